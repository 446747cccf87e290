"""What the machine knows: all that `_schemas` tells, and indexes over it. `replay` alone changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ottla.registry.entities import ConfigValue, Kept, Mode
from ottla.registry.machine import records as r
from ottla.registry.machine.ids import Ids, Place
from ottla.registry.machine.names import DEFAULT_CONTEXT, GLOBAL, context_of, covers, in_context_of, normal
from ottla.registry.machine.versions import SchemaVersion, Subject, version_of


class State:
    __slots__ = ("_sorted", "configs", "contexts", "ids", "kept", "modes", "old_form", "referrers", "subjects")

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Knows nothing, as before the first record: for another topic."""
        self.subjects: dict[str, Subject] = {}
        self.configs: dict[str, ConfigValue] = {}
        """By subject, `:.ctx:` or GLOBAL. Modes as well."""
        self.modes: dict[str, Mode] = {}
        self.contexts: dict[str, None] = {}
        """That have a record of their own; the default one has none."""
        self.ids = Ids()
        self.kept = Kept()
        """What the last NOOP with a value said."""
        self.referrers: dict[Place, dict[Place, int]] = {}
        """By what is referred to: who does, and its id."""
        self.old_form: dict[type[r.Record], None] = {}
        """ConfigPut, ModePut: the global one lies in the topic under its old key too."""
        self._sorted: list[str] | None = None

    # Questions.

    def subject(self, name: str) -> Subject | None:
        return self.subjects.get(name)

    def version(self, name: str, number: int, *, deleted: bool = False) -> SchemaVersion | None:
        subject = self.subjects.get(name)
        return subject.find(number, deleted=deleted) if subject is not None else None

    def names(self) -> list[str]:
        """Of all subjects, sorted; not to be changed."""
        if self._sorted is None:
            self._sorted = sorted(self.subjects)
        return self._sorted

    def has_subject(self, name: str, *, deleted: bool) -> bool:
        """A subject, or any in the context that the name stands for."""
        return any(True for _ in self.covered(name, deleted=deleted))

    def covered(self, scope: str, *, deleted: bool) -> Iterator[Subject]:
        """Subjects under a name or in a context that live, or that there are."""
        found = self.subjects.get(scope)
        if found is not None:
            if deleted or found.lives:
                yield found
            return
        if scope == GLOBAL or scope.startswith(":."):
            for name in self.names():
                if covers(scope, name) and (deleted or self.subjects[name].lives):
                    yield self.subjects[name]

    def known_contexts(self) -> list[str]:
        """Without the default one."""
        used = (context_of(name) for name in self.subjects if name.startswith(":."))
        return sorted({**self.contexts, **dict.fromkeys(used)})

    def referred_by(self, place: Place, *, deleted: bool) -> list[int]:
        """Ids of the schemas that refer to a version; those that are deleted softly only if asked for."""
        found = self.referrers.get(place, {})
        live = {
            id: None
            for (subject, version), id in found.items()
            if deleted or not self.subjects[subject].versions[version].deleted
        }
        return sorted(live)

    def next_kept(self, taken_away: list[SchemaVersion]) -> Kept:
        """What has to be written down with records that take these away for good."""
        gone = {(each.subject, each.version) for each in taken_away}
        ids = dict(self.kept.ids)
        for each in taken_away:
            context = context_of(each.subject)
            ids[context] = self.ids.highest(context)
        versions = {name: number for name, number in self.kept.versions.items() if name in self.subjects}
        for name in dict.fromkeys(each.subject for each in taken_away):
            subject = self.subjects[name]
            left = [number for number in subject.versions if (name, number) not in gone]
            if left and max(left) < subject.highest:
                versions[name] = subject.highest
            else:
                versions.pop(name, None)
        return Kept(dict(sorted(ids.items())), dict(sorted(versions.items())))

    # Changes.

    def replay(self, record: r.Record, timestamp: int) -> str | None:
        """Gives what is wrong with a record that has to be ignored."""
        replay: Callable[[State, Any, int], str | None] = _REPLAYS[type(record)]
        return replay(self, record, timestamp)

    def _schema_put(self, record: r.SchemaPut, timestamp: int) -> str | None:
        value = record.value
        version = version_of(value, timestamp)
        subject = self.subjects.get(value.subject)
        before = subject.versions.get(value.version) if subject is not None else None
        if before is not None:
            self._forget(before)
        if not self.ids.fits(version):
            if before is not None:
                self._remember(before)
            return f"{value.subject} version {value.version} has the id {value.id} of another schema"
        if subject is None:
            subject = self._add_subject(value.subject)
        subject.put(version)
        self._remember(version)
        return None

    def _schema_gone(self, record: r.SchemaGone, _: int) -> str | None:
        subject = self.subjects.get(record.subject)
        version = subject.versions.pop(record.version, None) if subject is not None else None
        if subject is None or version is None:
            return None
        self._forget(version)
        if not subject.versions:
            self._drop_subject(record.subject)
        return None

    def _subject_deleted(self, record: r.SubjectDeleted, _: int) -> str | None:
        subject = self.subjects.get(record.subject)
        for number, version in list(subject.versions.items()) if subject is not None else ():
            if number <= record.version and not version.deleted:
                assert subject is not None
                subject.versions[number] = version.softly_deleted()
        return None

    def _subject_cleared(self, record: r.SubjectCleared, _: int) -> str | None:
        for subject in list(self.covered(record.subject, deleted=True)):
            for number in [number for number, version in subject.versions.items() if version.deleted]:
                self._schema_gone(r.SchemaGone(subject.name, number), 0)
        return None

    def _config_put(self, record: r.ConfigPut, _: int) -> str | None:
        if record.old_form:
            self.old_form[r.ConfigPut] = None
        self.configs[record.subject] = record.value
        return None

    def _config_gone(self, record: r.ConfigGone, _: int) -> str | None:
        if record.old_form:
            self.old_form.pop(r.ConfigPut, None)
        else:
            self.configs.pop(record.subject, None)
        return None

    def _mode_put(self, record: r.ModePut, _: int) -> str | None:
        if record.old_form:
            self.old_form[r.ModePut] = None
        self.modes[record.subject] = record.mode
        return None

    def _mode_gone(self, record: r.ModeGone, _: int) -> str | None:
        if record.old_form:
            self.old_form.pop(r.ModePut, None)
        else:
            self.modes.pop(record.subject, None)
        return None

    def _context_put(self, record: r.ContextPut, _: int) -> str | None:
        if record.context != DEFAULT_CONTEXT:
            self.contexts[record.context] = None
        return None

    def _context_gone(self, record: r.ContextGone, _: int) -> str | None:
        self.contexts.pop(record.context, None)
        return None

    def _noop(self, record: r.Noop, _: int) -> str | None:
        if record.kept is None:
            return None
        self.kept = record.kept
        for context, highest in record.kept.ids.items():
            self.ids.used(context, highest)
        for name, highest in record.kept.versions.items():
            subject = self.subjects.get(name)
            if subject is not None:
                subject.highest = max(subject.highest, highest)
        return None

    def _add_subject(self, name: str) -> Subject:
        subject = self.subjects[name] = Subject(name, highest=self.kept.versions.get(name, 0))
        self._sorted = None
        return subject

    def _drop_subject(self, name: str) -> None:
        del self.subjects[name]
        self._sorted = None

    def _remember(self, version: SchemaVersion) -> None:
        self.ids.add(version)
        for place in referred_places(version):
            self.referrers.setdefault(place, {})[version.subject, version.version] = version.id

    def _forget(self, version: SchemaVersion) -> None:
        self.ids.remove(version)
        for place in referred_places(version):
            referrers = self.referrers.get(place, {})
            referrers.pop((version.subject, version.version), None)
            if not referrers:
                self.referrers.pop(place, None)


def referred_places(version: SchemaVersion) -> list[Place]:
    return [
        (normal(in_context_of(version.subject, reference.subject)), reference.version)
        for reference in version.references
    ]


_REPLAYS: dict[type, Callable[[State, Any, int], str | None]] = {
    r.SchemaPut: State._schema_put,
    r.SchemaGone: State._schema_gone,
    r.SubjectDeleted: State._subject_deleted,
    r.SubjectCleared: State._subject_cleared,
    r.ConfigPut: State._config_put,
    r.ConfigGone: State._config_gone,
    r.ModePut: State._mode_put,
    r.ModeGone: State._mode_gone,
    r.ContextPut: State._context_put,
    r.ContextGone: State._context_gone,
    r.Noop: State._noop,
}
