"""What the registry asks of a schema, whatever its language.

A `Language` parses text into a `Schema`; everything else is asked of that. Neither reads a clock: work that a schema
can make as large as it likes is counted by a `Budget`, in steps, and given up with `TooComplex`. Nothing is ever
fetched: what a schema refers to comes with it, as `Resolved`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

LanguageName = Literal["AVRO", "JSON", "PROTOBUF"]
Policy = Literal["STRICT", "LENIENT"]


class InvalidSchema(Exception):
    """The text is no schema of its language. The message says what is wrong and where, for error 42201."""


class TooComplex(Exception):
    """A check would take more steps than its budget has. The message says what grew too large."""


@dataclass(frozen=True, slots=True)
class Reference:
    name: str
    """The full name of a type (Avro), the path of an import (Protobuf), the URI of a $ref (JSON Schema)."""
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a reference stands for. A schema gets those of its references too, each before whoever refers to it."""

    reference: Reference
    text: str
    """Canonical."""


@dataclass(slots=True)
class Budget:
    """How many steps a parse or a comparison may still take: a limit in time that gives the same answer every time."""

    steps: int

    def spend(self, steps: int = 1) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise TooComplex("the schema is too complex to be checked")


DEFAULT_STEPS: Final = 200_000
"""Of a budget: about half a second."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason why a reader cannot read what a writer wrote."""

    code: str
    """Confluent's word for it: READER_FIELD_MISSING_DEFAULT_VALUE, FIELD_SCALAR_KIND_CHANGED, TYPE_NARROWED, ..."""
    path: str
    """Where: /fields/1 (Avro), #/properties/a (JSON Schema), #/Message/2 (Protobuf)."""
    text: str
    """The whole message as Confluent's server words it, but for %s where it says «new» or «old»: first of the reader's
    schema, then of the writer's."""
    hint: str = ""
    """What would be accepted, in our words; empty if there is nothing to say."""

    def worded(self, reader: str, writer: str) -> str:
        return self.text.replace("%s", reader, 1).replace("%s", writer, 1)


class Schema(Protocol):
    """A schema that was parsed. Equal texts with equal references are the same schema."""

    @property
    def language(self) -> LanguageName: ...

    @property
    def text(self) -> str:
        """Canonical: what is stored, compared and hashed."""

    def normalized(self) -> "Schema":
        """The same schema with whatever does not matter in one order."""

    def formatted(self, name: str) -> str:
        """The text in a `format` (resolved, serialized, ignore_extensions); canonical for a name it does not know."""

    def reading(self, writer: "Schema", policy: Policy, budget: Budget) -> tuple[Difference, ...]:
        """Why this schema cannot read what was written with another of the same language. Empty: it can."""

    def tags(self) -> dict[str, frozenset[str]]:
        """Embedded tags (`confluent:tags`) by the path of what carries them."""

    def records(self) -> frozenset[str]:
        """Those of such paths that lead to a record (a message, an object), not to a field."""

    def carriers(self) -> frozenset[str]:
        """The paths of all that could carry tags."""

    def with_tags(self, add: dict[str, frozenset[str]], remove: dict[str, frozenset[str]]) -> "Schema":
        """The same schema with tags added to and taken from what stands at these paths. Raises InvalidSchema."""


class Language(Protocol):
    @property
    def name(self) -> LanguageName: ...

    def parse(self, text: str, resolved: Sequence[Resolved], budget: Budget, *, new: bool) -> Schema:
        """Raises InvalidSchema. `new`: it is about to be registered, so that what older servers took and nobody should
        write any more (an invalid default, say) is refused; not `new` takes all that may lie in a topic already."""
