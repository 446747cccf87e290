"""From text to schemas: which language, what it refers to, and a memory of what was parsed before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
PARTS_PER_STEP: Final = 4
"""Of a text that is read at all: a fifth of a second for all the steps there are."""
COMPARISONS: Final = 10
"""As large as one may be, that a check may take: it holds up who writes. Those of 1,000 fields are 40 to 200 times
smaller."""
_REMEMBERED: Final = 1_000

Languages = Mapping[str, Callable[[], Language]]
"""By name (AVRO, JSON, PROTOBUF): made, and its library imported, with the first schema of that language."""

_Key = tuple[str, str, tuple[Resolved, ...], bool]


class TakesLong(Exception):
    """More than a parser in a hurry may do: somebody with more time has to be asked."""


class Parser:
    __slots__ = ("_languages", "_made", "_most", "_parsed", "_state", "_steps", "hurried")

    def __init__(
        self, state: State, languages: Languages, *, steps: int = DEFAULT_STEPS, remembered: int = _REMEMBERED
    ) -> None:
        self._state = state
        self._languages = languages
        self._steps = steps
        self._most = remembered
        self.hurried = False
        self._made: dict[str, Language] = {}
        self._parsed: dict[_Key, Schema] = {}
        """The last ones that were used, the newest last."""

    def in_a_hurry(self, steps: int) -> Parser:
        """Another one, with fewer steps and the same memory: two threads may use the two at once."""
        quick = Parser(self._state, self._languages, steps=min(steps, self._steps), remembered=self._most)
        quick._made, quick._parsed = self._made, self._parsed
        quick.hurried = True
        return quick

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self._languages)

    def budget(self) -> Budget:
        """For one parse, or for one comparison."""
        return Budget(self._steps)

    def budget_of_a_check(self) -> Budget:
        """For all comparisons with the versions of a subject. In a hurry it makes no difference how many there are."""
        return Budget(self._steps if self.hurried else COMPARISONS * self._steps)

    def parse(
        self, schema_type: str, text: str, references: Sequence[Reference], *, where: str, new: bool = False
    ) -> Schema:
        """`where` is the subject in whose context references are looked up. Raises Refusal."""
        if schema_type not in self._languages:
            raise refusals.invalid_schema(f"Invalid schema type {schema_type}")
        key = (schema_type, text, self.resolved(references, where, schema_type), new)
        known = self._parsed.pop(key, None)
        if known is not None:
            self._parsed[key] = known
            return known
        try:
            budget = self.budget()
            _check_parts(text, budget)
            parsed = self._language(schema_type).parse(text, key[2], budget, new=new)
            parsed.text.encode()  # half of a pair of surrogates, in an escape, is no text that could be written
        except (InvalidSchema, TooComplex, UnicodeEncodeError) as error:
            self.check_hurry(error)
            raise refusals.invalid_schema(f"Invalid schema of type {schema_type}, details: {error}") from None
        self._parsed[key] = parsed
        if len(self._parsed) > self._most:
            with suppress(KeyError, RuntimeError):  # another thread forgets, too
                del self._parsed[next(iter(self._parsed))]
        return parsed

    def check_hurry(self, error: Exception) -> None:
        """Raises TakesLong if it was only for want of steps that something was given up."""
        if self.hurried and isinstance(error, TooComplex):
            raise TakesLong from error

    def of_version(self, version: SchemaVersion) -> Schema:
        """Of a version that the topic has: what older servers took is taken."""
        return self.parse(version.schema_type, version.text, version.references, where=version.subject)

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


def _check_parts(text: str, budget: Budget) -> None:
    """Raises TooComplex. Who reads JSON knows how many members there are when all of them are made."""
    if sum(map(text.count, "{[,;")) > PARTS_PER_STEP * budget.steps:
        raise TooComplex("the schema is too complex to be checked")
