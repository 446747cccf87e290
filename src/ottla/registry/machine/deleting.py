"""Versions and subjects are deleted: softly first, then for good, and never while something refers to them."""

from ottla.registry.machine import config, lookups, modes, records, refusals
from ottla.registry.machine.commands import DeleteSubject, DeleteVersion
from ottla.registry.machine.records import Decision
from ottla.registry.machine.state import State
from ottla.registry.machine.versions import SchemaVersion


def decide_version(state: State, command: DeleteVersion) -> Decision[int]:
    """The reply is its number."""
    subject, number, permanent = command.subject, command.version, command.permanent
    if not state.has_subject(subject, deleted=True):
        raise refusals.subject_not_found(subject)
    found = lookups.version(state, subject, number, deleted=True)
    if found.deleted and not permanent:
        raise refusals.version_soft_deleted(subject, found.version)
    modes.check_writable(state, found.subject)
    _check_references(state, found, permanent=permanent)
    if permanent:
        if not found.deleted:
            raise refusals.version_not_soft_deleted(subject, found.version)
        return Decision(found.version, _gone(state, [found]))
    deleted: list[records.Record] = [records.SchemaPut(found.softly_deleted().value)]
    others = state.subjects[found.subject].ascending()
    if not any(each.version != found.version for each in others):
        deleted += [*modes.gone(state, found.subject), *config.gone(state, found.subject)]
    return Decision(found.version, tuple(deleted))


def decide_subject(state: State, command: DeleteSubject) -> Decision[list[int]]:
    """The reply is the numbers of the versions."""
    subject = state.subject(command.subject)
    if subject is None:
        raise refusals.subject_not_found(command.subject)
    if not command.permanent and not subject.lives:
        raise refusals.subject_soft_deleted(command.subject)
    modes.check_writable(state, command.subject)
    found = list(subject.ascending(deleted=command.permanent))
    for each in found:
        _check_references(state, each, permanent=command.permanent)
    if command.permanent:
        if subject.lives:
            raise refusals.subject_not_soft_deleted(command.subject)
        return Decision([each.version for each in found], _gone(state, found))
    deleted = (
        records.SubjectDeleted(command.subject, found[-1].version),
        *modes.gone(state, command.subject),
        *config.gone(state, command.subject),
    )
    return Decision([each.version for each in found], deleted)


def _check_references(state: State, version: SchemaVersion, *, permanent: bool) -> None:
    """Who is deleted softly may come back, and needs what it refers to: so that must not go for good before it."""
    if state.referred_by((version.subject, version.version), deleted=permanent):
        raise refusals.referenced(version.subject, version.version)


def _gone(state: State, versions: list[SchemaVersion]) -> tuple[records.Record, ...]:
    tombstones = (records.SchemaGone(each.subject, each.version) for each in versions)
    return (*tombstones, records.Noop(state.next_kept(versions)))
