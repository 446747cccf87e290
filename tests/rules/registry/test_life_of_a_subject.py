"""Any life of two subjects, beside a model of a page: what is registered, deleted, brought back, imported, forgotten.

The model has no topic, no indexes and no records. After each step the machine answers as the model does, and so does a
machine that read the topic from its beginning, and one that read what compaction would leave of it.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.registry.machine import commands as c
from ottla.registry.machine import lookups
from ottla.registry.machine.refusals import Refusal
from tests.rules.registry.scene import Scene, register
from tests.support.examples import examples
from tests.support.toy_language import toy

TEXTS = (toy("a"), toy("a", "b"), toy("a", "b?"), toy("b"))
NEEDS = ({"a"}, {"a", "b"}, {"a"}, {"b"})
HAS = ({"a"}, {"a", "b"}, {"a", "b"}, {"b"})


@dataclass
class Version:
    schema: int
    id: int
    deleted: bool = False


@dataclass
class Model:
    subjects: dict[str, dict[int, Version]] = field(default_factory=dict)
    highest_id: int = 0
    highest_version: dict[str, int] = field(default_factory=dict)
    checks: bool = True
    imports: dict[str, bool] = field(default_factory=dict)

    def register(self, subject: str, schema: int, id: int, version: int) -> object:
        there = self.subjects.get(subject, {})
        importing = self.imports.get(subject, False)
        live = {number: each for number, each in there.items() if not each.deleted}
        same = [number for number, each in live.items() if each.schema == schema]
        said = id if importing else None
        standing = sorted((each.id, each.schema) for versions in self.subjects.values() for each in versions.values())
        known = {schema: id for id, schema in standing}  # of several, imported, the highest
        if not importing:
            version = 0
        if version == 0 and same and said in (None, live[max(same)].id):
            return max(same), live[max(same)].id
        if said is None and not importing and self.checks and live:
            latest = live[max(live)]
            if not NEEDS[schema] <= HAS[latest.schema]:
                return 40901
        meant = {each.id: each.schema for versions in self.subjects.values() for each in versions.values()}
        if said is not None and meant.get(said, schema) != schema:
            return 42205
        if said is not None and version == 0 and known.get(schema) == said and same:
            return max(same), said
        number = version or self.highest_version.get(subject, 0) + 1
        new_id = said if said is not None else known.get(schema, self.highest_id + 1)
        for old in [old for old, each in there.items() if each.deleted and each.id == new_id and old < number]:
            del there[old]
        there[number] = Version(schema, new_id)
        self.subjects[subject] = dict(sorted(there.items()))
        self.highest_id = max(self.highest_id, new_id)
        self.highest_version[subject] = max(self.highest_version.get(subject, 0), number)
        return number, new_id

    def delete_version(self, subject: str, number: int, permanent: bool) -> object:
        there = self.subjects.get(subject)
        if there is None:
            return 40401
        if number not in there:
            return 40402
        if permanent:
            if not there[number].deleted:
                return 40407
            del there[number]
            self._drop_if_empty(subject)
            return number
        if there[number].deleted:
            return 40406
        there[number].deleted = True
        self._forget_mode(subject)
        return number

    def delete_subject(self, subject: str, permanent: bool) -> object:
        there = self.subjects.get(subject)
        if there is None:
            return 40401
        live = [number for number, each in there.items() if not each.deleted]
        if permanent:
            if live:
                return 40405
            del self.subjects[subject]
            del self.highest_version[subject]
            return list(there)
        if not live:
            return 40404
        for number in live:
            there[number].deleted = True
        self._forget_mode(subject)
        return live

    def set_import(self, subject: str, on: bool) -> object:
        self.imports[subject] = on
        return "IMPORT" if on else "READWRITE"

    def _drop_if_empty(self, subject: str) -> None:
        if not self.subjects[subject]:
            del self.subjects[subject]
            del self.highest_version[subject]

    def _forget_mode(self, subject: str) -> None:
        if all(each.deleted for each in self.subjects[subject].values()):
            self.imports.pop(subject, None)


subjects = st.sampled_from(("s", "s", "t"))
schemas = st.integers(0, len(TEXTS) - 1)
numbers = st.integers(1, 4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("register"), subjects, schemas, st.integers(1, 9), st.sampled_from((0, 0, 1, 2, 5))),
        st.tuples(st.just("delete_version"), subjects, numbers, st.booleans()),
        st.tuples(st.just("delete_subject"), subjects, st.booleans()),
        st.tuples(st.just("forget"), subjects),
        st.tuples(st.just("import"), subjects, st.booleans()),
        st.tuples(st.just("check"), st.booleans()),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    min_size=8,
    max_size=40,
)


@given(steps)
@settings(max_examples=examples(150), deadline=None)
def test_the_machine_lives_as_its_model(script: list[tuple[Any, ...]]) -> None:
    scene, model = Scene(), Model()
    for step in script:
        scene = _played(scene, model, step)
        _agree(scene, model)
    _agree(scene.restarted(), model)
    _agree(scene.restarted(compacted=True), model)


def _played(scene: Scene, model: Model, step: tuple[Any, ...]) -> Scene:
    match step:
        case ("register", subject, schema, id, version):
            importing = model.imports.get(subject, False)
            more = {"id": id, "version": version} if importing else {}
            said = _said(scene.tell(register(subject, TEXTS[schema], **more)))
            assert said == model.register(subject, schema, id, version)
        case ("delete_version", subject, number, permanent):
            said = _said(scene.tell(c.DeleteVersion(subject, number, permanent)))
            assert said == model.delete_version(subject, number, permanent)
        case ("delete_subject", subject, permanent):
            assert _said(scene.tell(c.DeleteSubject(subject, permanent))) == model.delete_subject(subject, permanent)
        case ("forget", subject):
            for permanent in (False, True):
                _played(scene, model, ("delete_subject", subject, permanent))
        case ("import", subject, on):
            said = scene.tell(c.PutMode(subject, "IMPORT" if on else "READWRITE", force=True))
            assert said == model.set_import(subject, on)
        case ("check", on):
            model.checks = on
            scene.tell(c.PutConfig("", {"compatibility_level": "BACKWARD" if on else "NONE"}))
        case ("restart", compacted):
            return scene.restarted(compacted=compacted)
    return scene


def _said(reply: Any) -> object:
    if isinstance(reply, Refusal):
        return reply.code
    return (reply.version, reply.id) if hasattr(reply, "guid") else reply


def _agree(scene: Scene, model: Model) -> None:
    state = scene.machine.state
    assert {name: scene.numbers(name) for name in state.names()} == {
        name: {number: each.deleted for number, each in versions.items()}
        for name, versions in sorted(model.subjects.items())
    }
    for name, versions in model.subjects.items():
        for number, each in versions.items():
            found = state.version(name, number, deleted=True)
            assert found is not None
            assert (found.text, found.id) == (TEXTS[each.schema], each.id)
            assert lookups.by_id(state, each.id, name).text == found.text
        assert state.subjects[name].highest == model.highest_version[name]
    assert state.ids.highest(".") == model.highest_id
