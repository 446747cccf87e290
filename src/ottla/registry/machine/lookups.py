"""Questions: by schema, by number, by id, by GUID, by metadata, and lists of all of these. They change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ottla.registry.machine import refusals, rules
from ottla.registry.machine.guids import guid_of
from ottla.registry.machine.names import (
    DEFAULT_CONTEXT,
    WILDCARD,
    context_of,
    in_context_of,
    qualified,
    split,
)
from ottla.registry.machine.versions import SchemaVersion

if TYPE_CHECKING:
    from ottla.registry.machine.commands import Sent
    from ottla.registry.machine.machine import Machine
    from ottla.registry.machine.state import State
    from ottla.registry.schemas.base import Reference, Schema


Sees: TypeAlias = Callable[[str], bool]
"""Whether somebody may know of a subject. What nobody may see is as if it were not there."""


def everybody(subject: str) -> bool:
    return True


class Which(Enum):
    LIVE = "live"
    ALL = "all"
    DELETED = "deleted"

    @classmethod
    def asked(cls, *, deleted: bool, deleted_only: bool = False) -> Which:
        return cls.DELETED if deleted_only else cls.ALL if deleted else cls.LIVE

    def takes(self, deleted: bool) -> bool:
        return self is Which.ALL or deleted == (self is Which.DELETED)


# By subject.


def places_to_look(state: State, subject: str) -> Iterator[str]:
    """A name without context means the default one; what is not there is looked for in the others."""
    yield subject
    context, name = split(subject)
    if context == DEFAULT_CONTEXT:
        for other in state.known_contexts():
            yield qualified(other, name)


def version(state: State, subject: str, number: int, *, deleted: bool) -> SchemaVersion:
    """Raises Refusal."""
    for name in places_to_look(state, subject):
        found = state.version(name, number, deleted=deleted)
        if found is not None:
            return found
    if not state.has_subject(subject, deleted=deleted):
        raise refusals.subject_not_found(subject)
    raise refusals.version_not_found(number)


def version_numbers(state: State, subject: str, which: Which, *, negative: bool) -> list[int]:
    """`negative`: those that are deleted with a minus sign."""
    if not state.has_subject(subject, deleted=which is not Which.LIVE or negative):
        raise refusals.subject_not_found(subject)
    found = state.subject(subject)
    if found is None:
        return []
    if negative:
        return [-each.version if each.deleted else each.version for each in found.ascending(deleted=True)]
    return [each.version for each in found.ascending(deleted=True) if which.takes(each.deleted)]


def referenced_by(state: State, subject: str, number: int, *, deleted: bool) -> list[int]:
    found = version(state, subject, number, deleted=True)
    return state.referred_by((found.subject, found.version), deleted=deleted)


def latest_with(state: State, subject: str, wanted: Mapping[str, str], *, deleted: bool) -> SchemaVersion:
    """The newest version whose metadata has all these properties."""
    if not state.has_subject(subject, deleted=deleted):
        raise refusals.subject_not_found(subject)
    found = state.subject(subject)
    for each in found.descending(deleted=deleted) if found is not None else ():
        if each.metadata is not None and all(each.property_map.get(name) == value for name, value in wanted.items()):
            return each
    raise refusals.schema_not_found()


# By schema.


def by_schema(machine: Machine, subject: str, sent: Sent, *, normalize: bool, deleted: bool) -> SchemaVersion:
    """Raises Refusal."""
    for index, name in enumerate(places_to_look(machine.state, subject)):
        try:
            found = under(machine, name, sent, normalize=normalize, deleted=deleted)
        except refusals.Refusal:
            if index == 0:  # in another context a reference may be missing
                raise
            continue
        if found is not None:
            return found
    if not machine.state.has_subject(subject, deleted=deleted):
        raise refusals.subject_not_found(subject)
    raise refusals.schema_not_found()


def under(machine: Machine, subject: str, sent: Sent, *, normalize: bool, deleted: bool) -> SchemaVersion | None:
    """The version of a subject that is this schema: as it is; then with what the latest one carries, and the config's
    defaults and overrides, as it would be registered."""
    if not sent.text.strip():
        return None
    config = machine.config_in_force(subject)
    schema = machine.parsed(sent, subject, normalize=normalize or bool(config.normalize))
    references = machine.references_of(sent, subject, normalize=normalize or bool(config.normalize))
    mine = rules.Carried(sent.metadata, sent.rules)
    wanted = _Wanted(subject, schema, references, mine)
    found = _matching(machine, wanted, deleted=deleted)
    if found is not None:
        return found
    known = machine.state.subject(subject)
    latest = known.latest() if known is not None else None
    if latest is None:
        return None
    full = rules.carried(mine, config, rules.Carried(latest.metadata, latest.rule_set))
    return None if full == mine else _matching(machine, wanted._replace(carried=full), deleted=deleted)


class _Wanted(NamedTuple):
    subject: str
    schema: Schema
    references: tuple[Reference, ...]
    carried: rules.Carried


def _matching(machine: Machine, wanted: _Wanted, *, deleted: bool) -> SchemaVersion | None:
    state, text = machine.state, wanted.schema.text
    guid = guid_of(text, wanted.references, *wanted.carried)
    subject = state.subject(wanted.subject)
    if subject is None:
        return None
    id = state.ids.of_guid(guid, context_of(wanted.subject))
    if id is not None:
        for name, number in reversed(state.ids.places(id, context_of(wanted.subject))):
            found = subject.find(number, deleted=deleted) if name == wanted.subject else None
            if found is not None:
                return found
    return next((each for each in subject.descending(deleted=deleted) if _same(machine, each, wanted)), None)


def _same(machine: Machine, version: SchemaVersion, wanted: _Wanted) -> bool:
    """The same schema with its references written out, or without the number that was put into its metadata."""
    said = rules.said_version(wanted.carried.metadata)
    metadata = version.metadata if said is not None else rules.without_version(version.metadata)
    if (metadata, version.rule_set) != tuple(wanted.carried):
        return False
    if version.references == wanted.references:
        return version.text == wanted.schema.text
    if wanted.references or version.schema_type != wanted.schema.language:
        return False
    return machine.parser.of_version(version).formatted("resolved") == wanted.schema.formatted("resolved")


# By id and GUID.


def by_id(state: State, id: int, subject: str, sees: Sees = everybody) -> SchemaVersion:
    """`subject` is a hint: other subjects of its context, then other contexts are tried as well. Raises Refusal."""
    found = _by_id(state, id, subject, sees)
    if found is None:
        raise refusals.schema_not_found(id)
    return found


def _by_id(state: State, id: int, subject: str, sees: Sees) -> SchemaVersion | None:
    context, name = split(subject)
    if name:
        for place in places_to_look(state, subject):
            for there, number in state.ids.places(id, context_of(place)):
                if there == place and sees(there):
                    return state.version(there, number, deleted=True)
    places = state.ids.places(id, context)
    found = [state.version(there, number, deleted=True) for there, number in places if sees(there)]
    return next((each for each in found if each is not None and not each.deleted), found[0] if found else None)


def places_of_id(state: State, id: int, subject: str, sees: Sees = everybody, *, deleted: bool) -> list[SchemaVersion]:
    """All versions of all subjects that share the id, in the context where it is found. Raises Refusal."""
    found = by_id(state, id, subject, sees)
    versions = (
        state.version(name, number, deleted=deleted)
        for name, number in state.ids.places(id, context_of(found.subject))
        if sees(name)
    )
    return [each for each in versions if each is not None]


def by_guid(state: State, guid: str, sees: Sees = everybody) -> SchemaVersion:
    for context in state.ids.contexts():
        id = state.ids.of_guid(guid.lower(), context)
        for name, number in state.ids.places(id, context) if id is not None else ():
            found = state.version(name, number, deleted=True) if sees(name) else None
            if found is not None:
                return found
    raise refusals.schema_not_found(guid)


def ids_of_guid(state: State, guid: str, sees: Sees = everybody) -> list[tuple[str, int]]:
    """Context and id, wherever the schema is known."""
    found = ((context, state.ids.of_guid(guid.lower(), context)) for context in state.ids.contexts())
    return [
        (context, id)
        for context, id in found
        if id is not None and any(sees(name) for name, _ in state.ids.places(id, context))
    ]


# Lists.


def begins(name: str, prefix: str) -> bool:
    """Whether the name of a subject begins so; `:*:` stands for any context, nothing for the default one."""
    if prefix.startswith(WILDCARD):
        return split(name)[1].startswith(prefix.removeprefix(WILDCARD))
    prefix = prefix.removeprefix(":.:")
    return name.startswith(prefix) and bool(prefix or not name.startswith(":."))


def matching(state: State, prefix: str) -> list[str]:
    return [name for name in state.names() if begins(name, prefix)]


def subjects(state: State, prefix: str, which: Which) -> list[str]:
    """A subject counts as deleted when all of its versions are."""
    return [name for name in matching(state, prefix) if which.takes(not state.subjects[name].lives)]


def schemas(state: State, prefix: str, which: Which, *, latest_only: bool) -> Iterator[SchemaVersion]:
    for name in matching(state, prefix):
        yield from versions_of(state, name, which, latest_only=latest_only)


def versions_of(state: State, subject: str, which: Which, *, latest_only: bool) -> list[SchemaVersion]:
    known = state.subject(subject)
    found = [each for each in known.ascending(deleted=True) if which.takes(each.deleted)] if known is not None else []
    return found[-1:] if latest_only else found


def aliases(state: State) -> dict[str, list[str]]:
    """By subject: the names that stand for it."""
    found: dict[str, list[str]] = {}
    for name in sorted(state.configs):
        alias = state.configs[name].alias
        if alias:
            found.setdefault(in_context_of(name, alias), []).append(name)
    return found
