"""A schema is registered: which id, which version, what it takes along from the latest one, and what it replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ottla.registry.entities import ConfigValue, Mode, SchemaValue
from ottla.registry.machine import compatibility, lookups, modes, records, refusals, rules
from ottla.registry.machine.commands import ModifyTags, Register, Sent, Tags
from ottla.registry.machine.guids import guid_of
from ottla.registry.machine.names import (
    DEFAULT_CONTEXT,
    context_of,
    may_be_registered,
    shown_context,
)
from ottla.registry.machine.records import Decision
from ottla.registry.machine.versions import SchemaVersion, Subject, version_of
from ottla.registry.schemas.base import InvalidSchema, Reference, Schema, TooComplex

if TYPE_CHECKING:
    from ottla.registry.machine.machine import Machine


class _Draft(NamedTuple):
    """The schema as it is to be written, without its numbers."""

    schema: Schema
    references: tuple[Reference, ...]
    carried: rules.Carried

    @property
    def guid(self) -> str:
        return guid_of(self.schema.text, self.references, *self.carried)

    def value(self, subject: str, version: int, id: int) -> SchemaValue:
        return SchemaValue(
            subject,
            version,
            id,
            self.schema.language,
            self.references,
            self.carried.metadata,
            self.carried.rules,
            self.schema.text,
            False,
        )


def decide_register(machine: Machine, command: Register) -> Decision[SchemaVersion]:
    if not may_be_registered(command.subject):
        raise refusals.invalid_subject(command.subject)
    config = machine.config_in_force(command.subject)
    known = known_already(machine, command, config)
    if known is not None:
        return Decision(known)
    mode = modes.in_force(machine.state, command.subject)
    _check_mode(command, mode)
    importing = mode in modes.IMPORTING
    subject = machine.state.subject(command.subject) or Subject(command.subject)
    number = subject.highest + 1
    command = _tagged(machine, command, subject, importing)
    sent, carried = _completed(command, config, subject, number, importing=importing)
    normalize = command.normalize or bool(config.normalize)
    draft = _Draft(
        machine.parsed(sent, command.subject, normalize=normalize, new=command.id is None),
        machine.references_of(sent, command.subject, normalize=normalize),
        carried,
    )
    same = _same_schema(machine, command, draft)
    if same is not None and command.version == 0:
        there = _standing(machine, subject, same)
        if there is not None:
            return Decision(there)
    if not importing and not command.force:
        found = compatibility.messages(
            machine.parser, config, draft.schema, carried.metadata, list(subject.ascending())
        )
        if found:
            raise refusals.incompatible(command.subject, found)
    number = _version(command, number, importing=importing)
    return _written(machine, draft, subject, number, command.id if same is None else same)


def known_already(machine: Machine, command: Register, config: ConfigValue) -> SchemaVersion | None:
    """The version that this schema is, if the subject has it: that much is answered even by who may not write. Raises
    Refusal for rules that cannot be: a GUID does not tell which kind a rule is of."""
    rules.check(command.schema.rules)
    if machine.state.subject(command.subject) is None:
        return None
    adds = config.default_metadata or config.override_metadata or config.default_rule_set or config.override_rule_set
    if command.version or command.tags_to_add or command.tags_to_remove or command.propagate_tags or adds:
        return None
    found = lookups.under(machine, command.subject, command.schema, normalize=command.normalize, deleted=False)
    return found if found is not None and command.id in (None, found.id) else None


def _check_mode(command: Register, mode: Mode) -> None:
    where = f"Subject {command.subject} in context {shown_context(command.subject)}"
    if mode in ("READONLY", "READONLY_OVERRIDE"):
        raise refusals.read_only(command.subject)
    if command.id is not None and mode not in modes.IMPORTING:
        raise refusals.not_permitted(f"{where} is not in import mode")
    if command.id is None and mode != "READWRITE":
        raise refusals.not_permitted(f"{where} is not in read-write mode")


def _tagged(machine: Machine, command: Register, subject: Subject, importing: bool) -> Register:
    """With embedded tags added, taken away, and those of the latest version put where it wants them."""
    latest = subject.latest()
    sent = command.schema
    add, remove = dict(command.tags_to_add), dict(command.tags_to_remove)
    propagated = {}
    if command.propagate_tags and latest is not None and not importing:
        propagated = machine.parser.of_version(latest).tags()
    if not add and not remove and not propagated:
        return command
    if not sent.text.strip() and latest is not None:
        sent = replace(sent, text=latest.text, schema_type=latest.schema_type, references=latest.references)
    parsed = machine.parsed(sent, command.subject)
    carriers = parsed.carriers() if propagated else frozenset()
    for path, tags in propagated.items():
        if path in carriers:  # what is gone takes its tags along
            add[path] = add.get(path, frozenset()) | tags
    tagged = _with_tags(parsed, add, remove)
    said = command.tags_to_add or command.tags_to_remove
    version = command.version or (-1 if said else 0)
    return replace(command, schema=replace(sent, text=tagged.text), version=version)


def _with_tags(schema: Schema, add: Tags, remove: Tags) -> Schema:
    """Raises Refusal, for a path that leads nowhere."""
    try:
        return schema.with_tags(dict(add), dict(remove))
    except (InvalidSchema, TooComplex) as error:
        raise refusals.invalid_schema(f"Invalid schema of type {schema.language}, details: {error}") from None


def _completed(
    command: Register, config: ConfigValue, subject: Subject, number: int, *, importing: bool
) -> tuple[Sent, rules.Carried]:
    """With what is absent taken from the latest version, and the config's defaults and overrides. An import takes
    everything as it comes."""
    sent = command.schema
    mine = rules.Carried(sent.metadata, sent.rules)
    if importing:
        if not sent.text.strip():
            raise refusals.invalid_schema("Empty schema")
        return sent, mine
    latest = subject.latest()
    if not sent.text.strip():
        if latest is None:
            raise refusals.invalid_schema("Empty schema")
        sent = replace(sent, text=latest.text, schema_type=latest.schema_type, references=latest.references)
    theirs = rules.Carried(latest.metadata, latest.rule_set) if latest is not None else None
    metadata, rule_set = rules.carried(mine, config, theirs)
    if command.version != 0 or rules.said_version(metadata) is not None:
        metadata = rules.with_version(metadata, number)
    return sent, rules.Carried(metadata, rule_set)


def _same_schema(machine: Machine, command: Register, draft: _Draft) -> int | None:
    """The id of an equal schema in the context, unless an import says another one."""
    found = machine.state.ids.of_guid(draft.guid, context_of(command.subject))
    return found if found is not None and command.id in (None, found) else None


def _standing(machine: Machine, subject: Subject, id: int) -> SchemaVersion | None:
    for name, number in reversed(machine.state.ids.places(id, context_of(subject.name))):
        found = subject.find(number) if name == subject.name else None
        if found is not None:
            return found
    return None


def _version(command: Register, number: int, *, importing: bool) -> int:
    if command.version <= 0:
        return number
    if command.version != number and not importing:
        text = f"Version is not one more than previous version: {number} would be, not {command.version}"
        raise refusals.invalid_schema(text)
    return command.version


def _written(machine: Machine, draft: _Draft, subject: Subject, number: int, id: int | None) -> Decision[SchemaVersion]:
    state, name = machine.state, subject.name
    context = context_of(name)
    value = draft.value(name, number, state.ids.next(context) if id is None else id)
    version = version_of(value, 0)
    if not state.ids.fits(version):
        where = shown_context(name)
        raise refusals.not_permitted(f"Overwrite new schema with id {value.id} in context {where} is not permitted.")
    found: list[records.Record] = []
    if context != DEFAULT_CONTEXT and context not in state.contexts:
        found.append(records.ContextPut(context))
    overwritten = subject.versions.get(number)
    found += _twins(machine, subject, version)
    found.append(records.SchemaPut(value))
    if overwritten is not None and overwritten.id != value.id:
        found.append(records.Noop(state.next_kept([overwritten])))
    return Decision(version, tuple(found))


def _twins(machine: Machine, subject: Subject, version: SchemaVersion) -> Sequence[records.Record]:
    """The same schema, softly deleted under an older number, is taken away for good, unless something refers to it."""
    return [
        records.SchemaGone(subject.name, each.version)
        for each in subject.ascending(deleted=True)
        if each.deleted and each.id == version.id and each.version < version.version
        if not machine.state.referrers.get((subject.name, each.version))
    ]


def decide_tags(machine: Machine, command: ModifyTags) -> Decision[SchemaVersion]:
    """A new version with other tags, metadata or rules, and the text of an older one."""
    base = lookups.version(machine.state, command.subject, command.version, deleted=False)
    number = command.new_version
    metadata = rules.with_version(command.metadata if command.metadata is not None else base.metadata, number)
    rule_set = command.rules
    if command.rules_to_merge is not None or command.rules_to_remove:
        older = machine.state.version(base.subject, number - 1 if number else -1)
        merged = rules.merged_rules(older.rule_set if older is not None else None, command.rules_to_merge)
        rule_set = rules.without(merged, command.rules_to_remove)
    tagged = _with_tags(machine.parser.of_version(base), command.tags_to_add, command.tags_to_remove)
    sent = Sent(tagged.text, base.schema_type, base.references, metadata, rule_set)
    return decide_register(machine, Register(base.subject, sent, version=number or -1))
