"""A small language of schemas, for what the registry does with any language.

`{"fields":{"a":"int","b":"int?"},"uses":["name"]}`: a reader needs each of its fields in the writer's schema, with the
same type, unless it ends with `?`. `uses` names references. `tags` are kept by path. `deep` is what comparing costs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ottla.registry.schemas.base import (
    Budget,
    Difference,
    InvalidSchema,
    LanguageName,
    Policy,
    Resolved,
    Schema,
)


@dataclass(frozen=True, slots=True)
class ToySchema:
    language: LanguageName
    text: str
    resolved: tuple[Resolved, ...] = ()

    @property
    def value(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.text)
        return value

    def normalized(self) -> Schema:
        return ToySchema(self.language, _text(self.value, sort=True), self.resolved)

    def formatted(self, name: str) -> str:
        if name != "resolved" or not self.resolved:
            return self.text
        fields = {}
        for each in self.resolved:
            fields.update(json.loads(each.text)["fields"])
        return _text({"fields": {**fields, **self.value["fields"]}})

    def reading(self, writer: Schema, policy: Policy, budget: Budget) -> tuple[Difference, ...]:
        assert isinstance(writer, ToySchema)
        mine, theirs = self.value, writer.value["fields"]
        budget.spend(mine.get("deep", 0) + len(mine["fields"]))
        return tuple(
            Difference(
                "MISSING", f"/fields/{name}", f"{{errorType:'MISSING', field:'{name}'}}", f"write {name} as {kind}?"
            )
            for name, kind in mine["fields"].items()
            if not kind.endswith("?") and theirs.get(name, "").removesuffix("?") != kind
            if policy == "STRICT" or name != "lenient"
        )

    def tags(self) -> dict[str, frozenset[str]]:
        return {path: frozenset(tags) for path, tags in self.value.get("tags", {}).items()}

    def records(self) -> frozenset[str]:
        return frozenset(path for path in self.value.get("tags", {}) if "." not in path)

    def carriers(self) -> frozenset[str]:
        return frozenset(self.value["fields"])

    def with_tags(self, add: dict[str, frozenset[str]], remove: dict[str, frozenset[str]]) -> Schema:
        tags = self.tags()
        for path, more in add.items():
            tags[path] = tags.get(path, frozenset()) | more
        for path, less in remove.items():
            tags[path] = tags.get(path, frozenset()) - less
        left = {path: sorted(some) for path, some in sorted(tags.items()) if some}
        value = {name: each for name, each in self.value.items() if name != "tags"}
        return ToySchema(self.language, _text({**value, **({"tags": left} if left else {})}), self.resolved)


@dataclass(frozen=True, slots=True)
class ToyLanguage:
    name: LanguageName

    def parse(self, text: str, resolved: Sequence[Resolved], budget: Budget, *, new: bool) -> Schema:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise InvalidSchema(str(error)) from None
        if not isinstance(value, dict) or not isinstance(value.get("fields"), dict):
            raise InvalidSchema("an object with fields is expected")
        if new and "old" in value:
            raise InvalidSchema("old is what nobody should write any more")
        known = {each.reference.name for each in resolved}
        for name in value.get("uses", ()):
            if name not in known:
                raise InvalidSchema(f"{name} is not among the references")
        return ToySchema(self.name, _text(value), tuple(resolved))


def _text(value: Any, *, sort: bool = False) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=sort, ensure_ascii=False)


TOY_LANGUAGES = {
    "AVRO": lambda: ToyLanguage("AVRO"),
    "JSON": lambda: ToyLanguage("JSON"),
    "PROTOBUF": lambda: ToyLanguage("PROTOBUF"),
}


def toy(*fields: str, **more: Any) -> str:
    """`toy("a", "b?")`: fields of the type int."""
    found = {name.removesuffix("?"): "int?" if name.endswith("?") else "int" for name in fields}
    return _text({"fields": found, **more})
