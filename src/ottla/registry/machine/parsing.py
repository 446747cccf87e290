"""From text to schemas: which language, what it refers to, and a memory of what was parsed before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ottla.registry.machine import refusals
from ottla.registry.machine.names import in_context_of
from ottla.registry.machine.state import State
from ottla.registry.machine.versions import LATEST, SchemaVersion
from ottla.registry.schemas.base import (
    DEFAULT_STEPS,
    Budget,
    InvalidSchema,
    Language,
    Reference,
    Resolved,
    Schema,
    TooComplex,
)

DEFAULT_TYPE: Final = "AVRO"
MOST_REFERENCES: Final = 1_000
"""Of one schema, those of its references included."""
_REMEMBERED: Final = 1_000

Languages = Mapping[str, Callable[[], Language]]
"""By name (AVRO, JSON, PROTOBUF): made, and its library imported, with the first schema of that language."""

_Key = tuple[str, str, tuple[Resolved, ...], bool]


class Parser:
    __slots__ = ("_languages", "_made", "_parsed", "_remembered", "_state", "_steps")

    def __init__(
        self, state: State, languages: Languages, *, steps: int = DEFAULT_STEPS, remembered: int = _REMEMBERED
    ) -> None:
        self._state = state
        self._languages = languages
        self._steps = steps
        self._remembered = remembered
        self._made: dict[str, Language] = {}
        self._parsed: OrderedDict[_Key, Schema] = OrderedDict()

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self._languages)

    def budget(self) -> Budget:
        return Budget(self._steps)

    def parse(
        self, schema_type: str, text: str, references: Sequence[Reference], *, where: str, new: bool = False
    ) -> Schema:
        """`where` is the subject in whose context references are looked up. Raises Refusal."""
        if schema_type not in self._languages:
            raise refusals.invalid_schema(f"Invalid schema type {schema_type}")
        key = (schema_type, text, self.resolved(references, where, schema_type), new)
        known = self._parsed.get(key)
        if known is not None:
            self._parsed.move_to_end(key)
            return known
        try:
            parsed = self._language(schema_type).parse(text, key[2], self.budget(), new=new)
            parsed.text.encode()  # half of a pair of surrogates, in an escape, is no text that could be written
        except (InvalidSchema, TooComplex, UnicodeEncodeError) as error:
            raise refusals.invalid_schema(f"Invalid schema of type {schema_type}, details: {error}") from None
        self._parsed[key] = parsed
        if len(self._parsed) > self._remembered:
            self._parsed.popitem(last=False)
        return parsed

    def of_version(self, version: SchemaVersion) -> Schema:
        """Of a version that the topic has: what older servers took is taken."""
        return self.parse(version.schema_type, version.text, version.references, where=version.subject)

    def knows(self, schema_type: str, text: str) -> bool:
        """Whether that text without references was parsed before, as one that is looked up."""
        return (schema_type, text, (), False) in self._parsed

    def _language(self, name: str) -> Language:
        if name not in self._made:
            self._made[name] = self._languages[name]()
        return self._made[name]

    # References.

    def pinned(self, references: Sequence[Reference], where: str) -> tuple[Reference, ...]:
        """With the number of the latest version where -1 says so."""
        return tuple(
            reference
            if reference.version != LATEST
            else Reference(reference.name, reference.subject, self._referred(reference, where, "").version)
            for reference in references
        )

    def resolved(self, references: Sequence[Reference], where: str, schema_type: str) -> tuple[Resolved, ...]:
        """All that a schema needs to be read, each before whoever refers to it. Raises Refusal."""
        found: dict[tuple[str, str, int], Resolved] = {}
        under_way: dict[tuple[str, int], None] = {}

        def visit(reference: Reference, asking: str) -> None:
            version = self._referred(reference, asking, schema_type)
            place = (version.subject, version.version)
            key = (reference.name, *place)
            if key in found or place in under_way:
                return
            if len(found) + len(under_way) >= MOST_REFERENCES:
                details = f"it needs more than {MOST_REFERENCES} other schemas"
                raise refusals.invalid_schema(f"Invalid schema of type {schema_type}, details: {details}")
            under_way[place] = None
            for each in version.references:
                visit(each, version.subject)
            del under_way[place]
            found[key] = Resolved(Reference(reference.name, reference.subject, version.version), version.text)

        for reference in references:
            visit(reference, where)
        return tuple(found.values())

    def _referred(self, reference: Reference, where: str, schema_type: str) -> SchemaVersion:
        subject = in_context_of(where, reference.subject)
        found = self._state.version(subject, reference.version, deleted=True)
        if found is None:
            asked = f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
            raise refusals.invalid_schema(f"Invalid schema of type {schema_type}, details: {asked}")
        return found
