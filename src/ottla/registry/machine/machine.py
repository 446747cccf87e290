"""The registry's core: commands in, records and replies out; `replay` is the only thing that changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.registry.entities import ConfigValue, Kept
from ottla.registry.machine import commands, compatibility, config, contexts, deleting, modes, registering
from ottla.registry.machine.names import in_context_of
from ottla.registry.machine.parsing import Languages, Parser
from ottla.registry.machine.records import Decision, Noop, Record
from ottla.registry.machine.refusals import Refusal, invalid_schema, not_permitted
from ottla.registry.machine.state import State
from ottla.registry.machine.versions import SchemaVersion
from ottla.registry.schemas.base import DEFAULT_STEPS, Reference, Schema


@dataclass(frozen=True, slots=True)
class Rules:
    """What a registry is set up with."""

    default_level: str = "BACKWARD"
    mode_mutability: bool = True
    steps: int = DEFAULT_STEPS
    """Of one parse or comparison."""
    remembered: int = 1_000
    """Schemas that are kept parsed."""


class Machine:
    __slots__ = ("parser", "rules", "state")

    def __init__(self, languages: Languages, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.state = State()
        self.parser = Parser(self.state, languages, steps=self.rules.steps, remembered=self.rules.remembered)

    def in_a_hurry(self, steps: int) -> Machine:
        """The same machine for who cannot wait: whatever takes more steps raises TakesLong."""
        quick = Machine({}, self.rules)
        quick.state = self.state
        quick.parser = self.parser.in_a_hurry(steps)
        return quick

    # The core.

    def decide(self, command: commands.Command) -> Decision[Any]:
        """The reply is a value, or a Refusal and no records."""
        decide = _DECIDE[type(command)]
        try:
            return decide(self, command)
        except Refusal as refusal:
            return Decision(refusal)

    def replay(self, record: Record, timestamp: int) -> str | None:
        """Gives what is wrong with a record that is ignored, for the log."""
        return self.state.replay(record, timestamp)

    def barrier(self) -> Noop:
        """What is written to learn where the topic ends: with all that a NOOP of ours keeps, as it takes the place of
        the last one."""
        kept = self.state.kept
        return Noop(None if kept == Kept() else kept)

    # What decisions and questions share.

    def config_in_force(self, subject: str) -> ConfigValue:
        return config.in_force(self.state, subject, self.rules.default_level)

    def parsed(self, sent: commands.Sent, subject: str, *, normalize: bool = False, new: bool = False) -> Schema:
        """Raises Refusal."""
        schema = self.parser.parse(sent.schema_type, sent.text, sent.references, where=subject, new=new)
        return schema.normalized() if normalize else schema

    def references_of(self, sent: commands.Sent, subject: str, *, normalize: bool) -> tuple[Reference, ...]:
        """Each with the number of a version; sorted and each once where all is made normal."""
        pinned = self.parser.pinned(sent.references, subject)
        if not normalize:
            return pinned
        return tuple(dict.fromkeys(sorted(pinned, key=lambda each: each.name)))

    def incompatibilities(
        self, subject: str, sent: commands.Sent, previous: list[SchemaVersion], *, normalize: bool
    ) -> list[str]:
        """Why a schema could not follow these versions. Raises Refusal."""
        if not sent.text.strip():
            raise invalid_schema("Empty schema")
        found = self.config_in_force(subject)
        schema = self.parsed(sent, subject, normalize=normalize or bool(found.normalize), new=True)
        return compatibility.messages(self.parser, found, schema, sent.metadata, previous)

    def known(self, command: commands.Register) -> SchemaVersion | None:
        """What registering a schema again would give; None: it may be new, or cannot be registered."""
        try:
            return registering.known_already(self, command, self.config_in_force(command.subject))
        except Refusal:
            return None

    def meant(self, subject: str) -> str:
        """The subject that a name stands for, which may be an alias."""
        found = self.state.configs.get(subject)
        return in_context_of(subject, found.alias) if found is not None and found.alias and subject else subject

    def check_modes_may_change(self) -> None:
        if not self.rules.mode_mutability:
            raise not_permitted("Mode changes are not allowed")


def _put_mode(machine: Machine, command: commands.PutMode) -> Decision[Any]:
    machine.check_modes_may_change()
    return modes.decide_put(machine.state, command)


def _delete_mode(machine: Machine, command: commands.DeleteMode) -> Decision[Any]:
    machine.check_modes_may_change()
    return modes.decide_delete(machine.state, command)


_DECIDE: dict[type, Callable[[Machine, Any], Decision[Any]]] = {
    commands.Register: registering.decide_register,
    commands.ModifyTags: registering.decide_tags,
    commands.DeleteVersion: lambda machine, command: deleting.decide_version(machine.state, command),
    commands.DeleteSubject: lambda machine, command: deleting.decide_subject(machine.state, command),
    commands.PutConfig: lambda machine, command: config.decide_put(machine.state, command),
    commands.DeleteConfig: lambda machine, command: config.decide_delete(
        machine.state, command, machine.rules.default_level
    ),
    commands.PutMode: _put_mode,
    commands.DeleteMode: _delete_mode,
    commands.DeleteContext: lambda machine, command: contexts.decide_delete(machine.state, command),
}
