"""Subjects and their versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from ottla.registry.entities import Metadata, RuleSet, SchemaValue
from ottla.registry.machine import refusals
from ottla.registry.machine.guids import guid_of
from ottla.registry.schemas.base import Reference


class SchemaVersion(msgspec.Struct, frozen=True):
    """One version of a subject, as the topic has it."""

    value: SchemaValue
    guid: str
    timestamp: int

    @property
    def subject(self) -> str:
        return self.value.subject

    @property
    def version(self) -> int:
        return self.value.version

    @property
    def id(self) -> int:
        return self.value.id

    @property
    def deleted(self) -> bool:
        return self.value.deleted

    @property
    def schema_type(self) -> str:
        return self.value.schema_type

    @property
    def text(self) -> str:
        return self.value.schema

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.value.references

    @property
    def metadata(self) -> Metadata | None:
        return self.value.metadata

    @property
    def rule_set(self) -> RuleSet | None:
        return self.value.rule_set

    @property
    def property_map(self) -> dict[str, str]:
        return (self.metadata.properties if self.metadata is not None else None) or {}

    def softly_deleted(self) -> SchemaVersion:
        return SchemaVersion(msgspec.structs.replace(self.value, deleted=True), self.guid, self.timestamp)


def version_of(value: SchemaValue, timestamp: int) -> SchemaVersion:
    return SchemaVersion(value, guid_of(value.schema, value.references, value.metadata, value.rule_set), timestamp)


@dataclass(slots=True)
class Subject:
    name: str
    versions: dict[int, SchemaVersion] = field(default_factory=dict)
    """In the order of their numbers."""
    highest: int = 0
    """Of the versions that there ever were while the subject lived: none is given twice."""

    def put(self, version: SchemaVersion) -> None:
        number = version.version
        in_order = number in self.versions or not self.versions or number > next(reversed(self.versions))
        self.versions[number] = version
        self.highest = max(self.highest, number)
        if not in_order:  # an import may go backwards
            self.versions = dict(sorted(self.versions.items()))

    @property
    def lives(self) -> bool:
        return any(not each.deleted for each in self.versions.values())

    def latest(self) -> SchemaVersion | None:
        """Of those that are not deleted."""
        return next(self.descending(), None)

    def descending(self, *, deleted: bool = False) -> Iterator[SchemaVersion]:
        return (each for each in reversed(self.versions.values()) if deleted or not each.deleted)

    def ascending(self, *, deleted: bool = False) -> Iterator[SchemaVersion]:
        return (each for each in self.versions.values() if deleted or not each.deleted)

    def find(self, number: int, *, deleted: bool = False) -> SchemaVersion | None:
        """-1 means the latest that is not deleted."""
        if number == LATEST:
            return self.latest()
        found = self.versions.get(number)
        return found if found is not None and (deleted or not found.deleted) else None


LATEST = -1
_MOST = (1 << 31) - 1


def number_of(said: str) -> int:
    """1 to 2³¹-1, `latest` or -1. Raises Refusal."""
    word = said.strip()
    if word.lower() == "latest":
        return LATEST
    digits = word.removeprefix("-").removeprefix("+")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 10:
        raise refusals.invalid_version(said)
    number = int(word)
    if number != LATEST and not 1 <= number <= _MOST:
        raise refusals.invalid_version(said)
    return number
