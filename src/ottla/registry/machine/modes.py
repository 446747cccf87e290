"""Modes: what may be written, and how an import begins."""

from typing import Final

from ottla.registry.entities import Mode
from ottla.registry.machine import records, refusals
from ottla.registry.machine.commands import DeleteMode, PutMode
from ottla.registry.machine.names import (
    EVERYWHERE,
    GLOBAL,
    context_key,
    context_of,
    covers,
    has_control_characters,
    split,
)
from ottla.registry.machine.state import State
from ottla.registry.machine.versions import SchemaVersion

MODES: Final[dict[str, Mode]] = {
    "READWRITE": "READWRITE",
    "READONLY": "READONLY",
    "READONLY_OVERRIDE": "READONLY_OVERRIDE",
    "IMPORT": "IMPORT",
    "FORWARD": "FORWARD",
}
IMPORTING: Final = ("IMPORT", "FORWARD")
"""Ids and versions come from elsewhere and are taken as they are."""
_READ_ONLY: Final = ("READONLY", "READONLY_OVERRIDE")


def in_force(state: State, subject: str) -> Mode:
    """READONLY_OVERRIDE for all wins over whatever a subject says."""
    if state.modes.get(GLOBAL) == "READONLY_OVERRIDE":
        return "READONLY_OVERRIDE"
    for scope in (subject, context_key(context_of(subject)), EVERYWHERE):
        if scope in state.modes:
            return state.modes[scope]
    return "READWRITE"


def own(state: State, subject: str) -> Mode | None:
    found = state.modes.get(subject)
    return "READWRITE" if found is None and subject == GLOBAL else found


def check_writable(state: State, subject: str) -> None:
    if in_force(state, subject) in _READ_ONLY:
        raise refusals.read_only(subject)


def decide_put(state: State, command: PutMode) -> records.Decision[Mode]:
    if has_control_characters(command.subject):
        raise refusals.invalid_subject(command.subject)
    mode = MODES.get((command.mode or "").upper())
    if mode is None or (mode == "FORWARD" and split(command.subject)[1]):
        raise refusals.invalid_mode()
    put: list[records.Record] = []
    if mode == "IMPORT" and in_force(state, command.subject) != "IMPORT" and not command.force:
        put += _emptied(state, command.subject)
    put.append(records.ModePut(command.subject, mode))
    if command.subject == GLOBAL and records.ModePut in state.old_form:
        put.append(records.ModeGone(GLOBAL, old_form=True))
    return records.Decision(mode, tuple(put))


def _emptied(state: State, scope: str) -> list[records.Record]:
    """An import begins in an empty subject: what is deleted softly is deleted for good first."""
    if state.has_subject(scope, deleted=False):
        raise refusals.not_permitted("Cannot import since found existing subjects")
    left: list[SchemaVersion] = []
    for subject in state.covered(scope, deleted=True):
        for version in subject.versions.values():
            referrers = state.referrers.get((subject.name, version.version), {})
            if any(not covers(scope, name) for name, _ in referrers):
                raise refusals.referenced(subject.name, version.version)
            left.append(version)
    found: list[records.Record] = [records.SchemaGone(each.subject, each.version) for each in left]
    if left:
        found.append(records.Noop(state.next_kept(left)))
    return [*found, records.SubjectCleared(scope)]


def decide_delete(state: State, command: DeleteMode) -> records.Decision[Mode]:
    found = own(state, command.subject)
    if found is None:
        raise refusals.subject_not_found(command.subject)
    gone_too = []
    if command.recursive and not split(command.subject)[1]:
        gone_too = [
            name
            for name in sorted(state.modes)
            if name != command.subject and covers(command.subject, name) and name != EVERYWHERE
        ]
    removed = [record for name in (command.subject, *gone_too) for record in gone(state, name)]
    return records.Decision(found, tuple(removed))


def gone(state: State, subject: str) -> list[records.Record]:
    """The records that take a subject's mode away."""
    found: list[records.Record] = [records.ModeGone(subject)] if subject in state.modes else []
    if subject == GLOBAL and records.ModePut in state.old_form:
        found.append(records.ModeGone(GLOBAL, old_form=True))
    return found
