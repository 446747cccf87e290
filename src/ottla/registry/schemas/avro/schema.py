"""An Avro schema as the registry asks for it (`base.Schema`), and the language that makes it."""

from collections.abc import Sequence

from ottla.registry.schemas.avro import compatibility, tags
from ottla.registry.schemas.avro.normal import Normal
from ottla.registry.schemas.avro.parse import Types
from ottla.registry.schemas.avro.render import canonical_text
from ottla.registry.schemas.avro.tree import Node, full_name
from ottla.registry.schemas.base import (
    DEFAULT_STEPS,
    Budget,
    Difference,
    InvalidSchema,
    LanguageName,
    Policy,
    Resolved,
    Schema,
)


class AvroSchema:
    """Immutable. Equal if text and references are."""

    __slots__ = ("_referenced", "_resolved", "_text", "root")

    def __init__(self, root: Node, resolved: tuple[Resolved, ...], referenced: frozenset[str]) -> None:
        """`referenced`: the types that the references are, written by name only. Types inside of those are not."""
        self.root = root
        self._resolved = resolved
        self._referenced = referenced
        self._text = canonical_text(root, referenced)

    @property
    def language(self) -> LanguageName:
        return "AVRO"

    @property
    def text(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self._text == other._text and self._resolved == other._resolved

    def __hash__(self) -> int:
        return hash(self._text)

    def normalized(self) -> "AvroSchema":
        return parsed(Normal(self._referenced).text(self.root), self._resolved, Budget(DEFAULT_STEPS), new=False)

    def formatted(self, name: str) -> str:
        return canonical_text(self.root) if name.lower() == "resolved" else self._text

    def reading(self, writer: Schema, policy: Policy, budget: Budget) -> tuple[Difference, ...]:
        """Both policies are one: LENIENT is for JSON Schema."""
        assert isinstance(writer, AvroSchema), writer.language
        return compatibility.differences(self.root, writer.root, budget)

    def tags(self) -> dict[str, frozenset[str]]:
        return tags.tags_of(self.root)

    def records(self) -> frozenset[str]:
        return frozenset(each.name.full for each in tags.records(self.root))

    def carriers(self) -> frozenset[str]:
        return frozenset(tags.carriers(self.root))

    def with_tags(self, add: dict[str, frozenset[str]], remove: dict[str, frozenset[str]]) -> "AvroSchema":
        changed = parsed(self._text, self._resolved, Budget(DEFAULT_STEPS), new=False)  # a tree of its own to change
        tags.retag(changed.root, add, remove)
        return AvroSchema(changed.root, self._resolved, self._referenced)


def parsed(text: str, resolved: Sequence[Resolved], budget: Budget, *, new: bool) -> AvroSchema:
    types = Types()
    referenced = []
    for each in resolved:
        try:
            referenced.append(full_name(types.add(each.text, budget, new=False)))
        except InvalidSchema as wrong:
            raise InvalidSchema(f"the reference {each.reference.name}: {wrong}") from wrong
    root = types.add(text, budget, new=new)
    return AvroSchema(root, tuple(resolved), frozenset(referenced))


class Avro:
    """The language."""

    @property
    def name(self) -> LanguageName:
        return "AVRO"

    def parse(self, text: str, resolved: Sequence[Resolved], budget: Budget, *, new: bool) -> AvroSchema:
        return parsed(text, resolved, budget, new=new)
