"""Modes: who may write what, and how an import begins."""

import pytest

from ottla.registry.machine import commands as c
from ottla.registry.machine import modes
from ottla.registry.machine import records as r
from ottla.registry.schemas.base import Reference
from tests.rules.registry.scene import Scene, register, with_rules, written
from tests.support.toy_language import toy

A, B = toy("a"), toy("a", "b?")


def importing(subject: str = "s") -> Scene:
    scene = Scene()
    assert scene.tell(c.PutMode(subject, "IMPORT")) == "IMPORT"
    return scene


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_read_only_refuses_writes_and_knows_what_it_has(mode: str) -> None:
    scene = Scene()
    scene.register("s", A)
    scene.tell(c.PutMode("s", mode))
    assert scene.refused(register("s", B)) == 42205
    assert scene.refused(c.PutConfig("s", {"compatibility_level": "NONE"})) == 42205
    assert scene.refused(c.DeleteVersion("s", 1)) == 42205
    assert scene.refused(c.DeleteSubject("s")) == 42205
    assert scene.register("s", A).version == 1


def test_the_nearest_mode_counts_but_a_global_override_counts_for_all() -> None:
    scene = Scene()
    state = scene.machine.state
    scene.tell(c.PutMode("", "READONLY"))
    scene.tell(c.PutMode("s", "READWRITE"))
    assert (modes.in_force(state, "s"), modes.in_force(state, "t")) == ("READWRITE", "READONLY")
    assert modes.in_force(state, ":.eu:s") == "READWRITE"
    scene.tell(c.PutMode("", "READONLY_OVERRIDE"))
    assert modes.in_force(state, "s") == modes.in_force(state, ":.eu:s") == "READONLY_OVERRIDE"


def test_the_mode_of_all_contexts_is_looked_at_last() -> None:
    scene = Scene()
    scene.tell(c.PutMode(":.__GLOBAL:", "READONLY"))
    scene.tell(c.PutMode(":.eu:", "READWRITE"))
    state = scene.machine.state
    assert (modes.in_force(state, "s"), modes.in_force(state, ":.eu:s")) == ("READONLY", "READWRITE")


def test_an_id_may_be_said_in_an_import_only_and_must_be_there() -> None:
    scene = importing()
    assert scene.refused(register("s", A)) == 42205
    assert scene.register("s", A, id=7, version=3).id == 7
    assert scene.refused(register("t", A, id=7)) == 42205


def test_an_import_takes_ids_and_versions_as_they_are_and_others_go_on_above() -> None:
    scene = importing()
    scene.register("s", A, id=100, version=7)
    scene.register("s", B, id=40, version=3)
    assert list(scene.numbers("s")) == [3, 7]
    assert scene.register("t", toy("z")).id == 101
    scene.tell(c.PutMode("s", "READWRITE"))
    assert scene.register("s", toy("a", "c?")).version == 8


def test_an_import_does_not_ask_whether_schemas_are_compatible() -> None:
    scene = importing()
    scene.register("s", A, id=1)
    assert scene.register("s", toy("z"), id=2).version == 2


def test_an_import_overwrites_a_version_but_never_what_an_id_means() -> None:
    scene = importing()
    scene.register("s", A, id=5, version=1)
    assert scene.refused(register("s", B, id=5, version=2)) == 42205
    scene.register("s", B, id=6, version=1)
    assert scene.machine.state.ids.guid(5, ".") is None
    assert scene.register("s", B, id=6, version=1).text == B


def test_an_id_that_an_import_overwrote_is_not_given_again() -> None:
    scene = importing()
    scene.register("s", A, id=5, version=1)
    scene.register("s", B, id=2, version=1)
    other = scene.restarted(compacted=True)
    assert other.register("t", toy("z")).id == 6


def test_an_import_begins_empty_or_by_force() -> None:
    scene = Scene()
    scene.register("s", A)
    assert scene.refused(c.PutMode("s", "IMPORT")) == 42205
    assert scene.refused(c.PutMode("", "IMPORT")) == 42205
    assert scene.tell(c.PutMode("s", "IMPORT", force=True)) == "IMPORT"


def test_what_is_deleted_softly_is_deleted_for_good_before_an_import() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.tell(c.DeleteSubject("s"))
    scene.tell(c.PutMode("s", "IMPORT"))
    assert scene.numbers("s") == {}
    assert written(scene, r.SubjectCleared) == [r.SubjectCleared("s")]
    assert scene.register("s", B, id=9).version == 1


def test_an_import_does_not_clear_what_others_refer_to() -> None:
    scene = Scene()
    scene.register("base", A)
    scene.register("s", toy("x"), references=(Reference("b", "base", 1),))
    scene.tell(c.DeleteVersion("s", 1))
    scene.tell(c.DeleteVersion("base", 1))
    assert scene.refused(c.PutMode("base", "IMPORT")) == 42206


def test_forward_is_a_mode_of_all_or_of_a_context() -> None:
    scene = Scene()
    assert scene.refused(c.PutMode("s", "FORWARD")) == 42204
    assert scene.tell(c.PutMode(":.eu:", "forward")) == "FORWARD"
    assert scene.refused(register(":.eu:s", A)) == 42205
    assert scene.register(":.eu:s", A, id=3).id == 3


@pytest.mark.parametrize("mode", [None, "", "READ", "nonsense"])
def test_other_words_are_no_mode(mode: str | None) -> None:
    assert Scene().refused(c.PutMode("s", mode)) == 42204


def test_a_mode_that_is_taken_away_is_told_and_one_that_is_not_set_is_not_found() -> None:
    scene = Scene()
    assert scene.refused(c.DeleteMode("s")) == 40401
    scene.tell(c.PutMode("s", "READONLY"))
    assert scene.tell(c.DeleteMode("s")) == "READONLY"
    assert modes.own(scene.machine.state, "s") is None


def test_a_recursive_delete_takes_the_modes_of_the_contexts_subjects_along() -> None:
    scene = Scene()
    for name in (":.eu:", ":.eu:s", ":.us:s", "s"):
        scene.tell(c.PutMode(name, "READONLY"))
    scene.tell(c.DeleteMode(":.eu:", recursive=True))
    assert sorted(scene.machine.state.modes) == [":.us:s", "s"]


def test_modes_can_be_locked() -> None:
    scene = with_rules(mode_mutability=False)
    assert scene.refused(c.PutMode("s", "READONLY")) == 42205
    assert scene.refused(c.DeleteMode("s")) == 42205
