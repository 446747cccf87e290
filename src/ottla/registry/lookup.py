"""What serdes ask of a registry, and what they get. Nothing here talks to one: `registry.client` does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.registry.schemas.base import LanguageName, Reference, Resolved


class UnknownSchema(Exception):
    """The registry has no such schema, or refuses one. It will say so again."""


class RegistryUnavailable(Exception):
    """Nobody answers, or not in time. It says nothing of the schema: whoever asked fails, and asks again."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema as the registry knows it."""

    id: int
    guid: str
    """Empty if the server is too old to have any."""
    language: LanguageName
    text: str
    references: tuple[Reference, ...] = ()
    resolved: tuple[Resolved, ...] = ()
    """What it refers to, directly or not, each before whoever refers to it."""


class Registry(Protocol):
    """Raises UnknownSchema and RegistryUnavailable. What never changes is asked for once."""

    def by_id(self, schema_id: int) -> Registered: ...

    def by_guid(self, guid: str) -> Registered: ...

    def latest(self, subject: str) -> Registered: ...

    def resolve(self, references: Sequence[Reference]) -> tuple[Resolved, ...]: ...

    def register(
        self, subject: str, language: LanguageName, text: str, references: Sequence[Reference] = ()
    ) -> Registered:
        """Gives the id and GUID that the schema has there, new or not."""

    def find(self, subject: str, language: LanguageName, text: str, references: Sequence[Reference] = ()) -> Registered:
        """The same without registering it."""
