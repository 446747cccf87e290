"""A JSON Schema that was parsed, and the language that parses it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ottla.registry.schemas.base import Budget, Difference, InvalidSchema, Policy, Resolved, Schema
from ottla.registry.schemas.json_schema import tags
from ottla.registry.schemas.json_schema.comparison import Comparison, Told
from ottla.registry.schemas.json_schema.differences import said
from ottla.registry.schemas.json_schema.documents import Documents
from ottla.registry.schemas.json_schema.json_text import Json, read, written
from ottla.registry.schemas.json_schema.shapes import shape_of
from ottla.registry.schemas.json_schema.validity import check_new

MAX_STEPS_OF_A_COPY = 1 << 62
"""A schema that was parsed once may be parsed again."""


@dataclass(frozen=True, slots=True)
class JsonSchema:
    text: str
    resolved: tuple[Resolved, ...]
    tree: Json = field(compare=False, repr=False)
    """Not to be changed."""
    documents: Documents = field(compare=False, repr=False)

    @property
    def language(self) -> Literal["JSON"]:
        return "JSON"

    def normalized(self) -> "JsonSchema":
        return _parsed(written(self.tree, ordered=True), self.resolved, Budget(MAX_STEPS_OF_A_COPY))

    def formatted(self, name: str) -> str:
        """JSON Schema has no format but the canonical one."""
        return self.text

    def reading(self, writer: Schema, policy: Policy, budget: Budget) -> tuple[Difference, ...]:
        assert isinstance(writer, JsonSchema)
        if writer == self:
            return ()
        pair = shape_of(writer.documents.root), shape_of(self.documents.root)
        comparison = Comparison(policy, budget)
        if comparison.reads(pair):
            return ()
        return tuple(said(each.code, each.path) for each in comparison.told(pair))

    def changes(self, writer: "JsonSchema", policy: Policy, budget: Budget) -> list[Told]:
        """All differences from another schema, the compatible ones too."""
        pair = shape_of(writer.documents.root), shape_of(self.documents.root)
        comparison = Comparison(policy, budget)
        comparison.reads(pair)
        return comparison.told(pair, all_of_them=True)

    def tags(self) -> dict[str, frozenset[str]]:
        return tags.tags_of(self.tree)

    def records(self) -> frozenset[str]:
        return tags.records(self.tree)

    def carriers(self) -> frozenset[str]:
        return tags.carriers(self.tree)

    def with_tags(self, add: dict[str, frozenset[str]], remove: dict[str, frozenset[str]]) -> "JsonSchema":
        copy = read(self.text)
        tags.change(copy, add, remove)
        return _parsed(written(copy), self.resolved, Budget(MAX_STEPS_OF_A_COPY))


class JsonSchemaLanguage:
    @property
    def name(self) -> Literal["JSON"]:
        return "JSON"

    def parse(self, text: str, resolved: Sequence[Resolved], budget: Budget, *, new: bool) -> JsonSchema:
        schema = _parsed(text, tuple(resolved), budget)
        if new:
            check_new(schema.text, schema.tree, schema.documents)
        return schema


def _parsed(text: str, resolved: tuple[Resolved, ...], budget: Budget) -> JsonSchema:
    tree = _read_schema(text)
    references = [(each.reference.name, _read_schema(each.text)) for each in resolved]
    documents = Documents(tree, references, budget)
    return JsonSchema(written(tree), resolved, tree, documents)


def _read_schema(text: str) -> Json:
    tree = read(text)
    if not isinstance(tree, dict | bool):
        raise InvalidSchema("a JSON Schema is an object, true or false")
    return tree
