"""The life of a version: which id, which number, and what a delete leaves."""

from ottla.registry.entities import Metadata
from ottla.registry.machine import commands as c
from ottla.registry.machine import records as r
from ottla.registry.machine.machine import Machine
from ottla.registry.machine.parsing import PARTS_PER_STEP
from ottla.registry.machine.refusals import Refusal
from ottla.registry.schemas.base import DEFAULT_STEPS, Language, Reference
from tests.rules.registry.scene import Scene, register, written
from tests.support.toy_language import toy

A, B = toy("a"), toy("a", "b?")


def test_the_first_schema_of_a_subject_is_version_1_with_the_next_id() -> None:
    scene = Scene()
    assert [(v.version, v.id) for v in (scene.register("s", A), scene.register("s", B))] == [(1, 1), (2, 2)]


def test_a_schema_that_the_subject_has_is_not_written_again() -> None:
    scene = Scene()
    first = scene.register("s", A)
    size = len(scene.topic)
    assert scene.register("s", A).id == first.id
    assert len(scene.topic) == size


def test_equal_schemas_of_two_subjects_share_an_id() -> None:
    scene = Scene()
    assert scene.register("s", A).id == scene.register("t", A).id == 1
    assert scene.register("t", B).id == 2


def test_equal_texts_with_other_references_or_metadata_are_other_schemas() -> None:
    scene = Scene()
    scene.register("base", toy("x"))
    plain = scene.register("s", A)
    referring = scene.register("t", A, references=(Reference("base", "base", 1),))
    described = scene.register("u", A, metadata=Metadata(properties={"owner": "me"}))
    assert len({plain.id, referring.id, described.id}) == 3


def test_ids_count_from_one_in_each_context() -> None:
    scene = Scene()
    scene.register("s", A)
    assert scene.register(":.eu:s", B).id == 1
    assert scene.register(":.eu:s", toy("a", "c?")).id == 2
    assert written(scene, r.ContextPut) == [r.ContextPut(".eu")]


def test_a_softly_deleted_version_is_not_the_latest_and_its_number_is_not_used_again() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("s", B)
    assert scene.tell(c.DeleteVersion("s", 2)) == 2
    found = scene.machine.state.subject("s")
    assert found is not None
    latest = found.latest()
    assert latest is not None and latest.version == 1
    assert scene.register("s", toy("a", "c?")).version == 3


def test_a_softly_deleted_schema_that_comes_again_has_its_id_the_next_version_and_loses_its_twin() -> None:
    scene = Scene()
    first = scene.register("s", A)
    scene.tell(c.DeleteVersion("s", 1))
    again = scene.register("s", A)
    assert (again.id, again.version) == (first.id, 2)
    assert scene.numbers("s") == {2: False}


def test_a_twin_that_something_refers_to_stays() -> None:
    scene = Scene()
    scene.register("base", A)
    scene.register("base", B)
    scene.register("s", toy("x"), references=(Reference("base", "base", 1),))
    scene.tell(c.DeleteVersion("s", 1))
    scene.tell(c.DeleteVersion("base", 1))
    scene.register("base", A, force=True)
    assert scene.numbers("base") == {1: True, 2: False, 3: False}


def test_a_permanent_delete_wants_a_soft_one_first() -> None:
    scene = Scene()
    scene.register("s", A)
    assert scene.refused(c.DeleteVersion("s", 1, permanent=True)) == 40407
    assert scene.refused(c.DeleteSubject("s", permanent=True)) == 40405
    scene.tell(c.DeleteVersion("s", 1))
    assert scene.refused(c.DeleteVersion("s", 1)) == 40406
    assert scene.refused(c.DeleteSubject("s")) == 40404
    assert scene.tell(c.DeleteVersion("s", 1, permanent=True)) == 1
    assert scene.refused(c.DeleteVersion("s", 1)) == 40401


def test_a_permanent_delete_frees_the_subject_but_not_the_id() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.tell(c.DeleteSubject("s"))
    assert scene.tell(c.DeleteSubject("s", permanent=True)) == [1]
    again = scene.register("s", A)
    assert (again.version, again.id) == (1, 2)


def test_a_permanent_delete_of_a_subject_tells_all_versions_that_were_left() -> None:
    scene = Scene()
    for text in (A, B, toy("a", "c?")):
        scene.register("s", text)
    scene.tell(c.DeleteVersion("s", 1))
    scene.tell(c.DeleteVersion("s", 1, permanent=True))
    assert scene.tell(c.DeleteSubject("s")) == [2, 3]
    assert scene.tell(c.DeleteSubject("s", permanent=True)) == [2, 3]


def test_ids_are_never_used_again_even_when_the_topic_has_forgotten_them() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("t", B)
    scene.tell(c.DeleteSubject("t"))
    scene.tell(c.DeleteSubject("t", permanent=True))
    other = scene.restarted(compacted=True)
    assert other.register("u", toy("z")).id == 3


def test_versions_are_never_used_again_while_the_subject_lives_even_when_the_topic_has_forgotten_them() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("s", B)
    scene.tell(c.DeleteVersion("s", 2))
    scene.tell(c.DeleteVersion("s", 2, permanent=True))
    assert scene.restarted(compacted=True).register("s", toy("a", "c?")).version == 3
    assert scene.register("s", toy("a", "c?")).version == 3


def test_a_version_can_be_said_and_must_be_the_next() -> None:
    scene = Scene()
    scene.register("s", A)
    assert scene.refused(register("s", B, version=3)) == 42201
    assert scene.refused(register("s", B, version=1)) == 42201
    made = scene.register("s", B, version=2)
    assert made.version == 2
    assert made.metadata == Metadata(properties={"confluent:version": "2"})


def test_what_is_referred_to_cannot_be_deleted() -> None:
    scene = Scene()
    scene.register("base", A)
    scene.register("s", toy("x", uses=["b"]), references=(Reference("b", "base", 1),))
    assert scene.refused(c.DeleteVersion("base", 1)) == 42206
    assert scene.refused(c.DeleteSubject("base")) == 42206
    scene.tell(c.DeleteVersion("s", 1))
    assert scene.tell(c.DeleteVersion("base", 1)) == 1
    # The one that refers to it is deleted softly only: it may come back.
    assert scene.refused(c.DeleteVersion("base", 1, permanent=True)) == 42206
    scene.tell(c.DeleteVersion("s", 1, permanent=True))
    assert scene.tell(c.DeleteVersion("base", 1, permanent=True)) == 1


def test_a_reference_to_the_latest_version_is_kept_as_its_number() -> None:
    scene = Scene()
    scene.register("base", A)
    scene.register("base", B)
    made = scene.register("s", toy("x"), references=(Reference("b", "base", -1),))
    assert made.references == (Reference("b", "base", 2),)


def test_a_reference_that_leads_nowhere_is_an_invalid_schema() -> None:
    scene = Scene()
    reply = scene.tell(register("s", A, references=(Reference("b", "base", 1),)))
    assert isinstance(reply, Refusal) and reply.code == 42201
    assert 'No schema reference found for subject "base" and version 1' in reply.message


def test_references_are_looked_up_in_the_context_of_who_refers() -> None:
    scene = Scene()
    scene.register(":.eu:base", A)
    made = scene.register(":.eu:s", toy("x"), references=(Reference("b", "base", 1),))
    assert scene.machine.state.referred_by((":.eu:base", 1), deleted=False) == [made.id]
    assert scene.refused(register("s", toy("x"), references=(Reference("b", "base", 1),))) == 42201


def test_the_last_soft_delete_takes_config_and_mode_of_the_subject_along() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.tell(c.PutConfig("s", {"compatibility_level": "NONE"}))
    scene.tell(c.PutMode("s", "READWRITE"))
    scene.tell(c.DeleteVersion("s", 1))
    assert "s" not in scene.machine.state.configs
    assert "s" not in scene.machine.state.modes


def test_names_that_cannot_be_subjects_are_refused() -> None:
    scene = Scene()
    for name in ("", "a\nb", "__GLOBAL", ":.ctx:", ":*:x", ":.__GLOBAL:x"):
        assert scene.refused(register(name, A)) == 42208, name


def test_a_schema_that_carries_nothing_takes_what_the_latest_carries() -> None:
    scene = Scene()
    scene.register("s", A, metadata=Metadata(properties={"owner": "me"}))
    assert scene.register("s", B).metadata == Metadata(properties={"owner": "me"})


def test_an_empty_schema_means_the_latest_one() -> None:
    scene = Scene()
    assert scene.refused(register("s", " ")) == 42201
    scene.register("s", A)
    made = scene.register("s", "", metadata=Metadata(properties={"owner": "me"}))
    assert (made.text, made.version, made.property_map) == (A, 2, {"owner": "me"})


def test_a_text_of_more_parts_than_could_be_looked_at_is_not_read_at_all() -> None:
    """Four million empty arrays are twelve megabytes, and four seconds to whoever reads them first."""

    def never() -> Language:
        raise AssertionError("it was read")

    scene = Scene(machine=Machine({"AVRO": never}))
    assert scene.refused(register("s", "[" + "[]," * (PARTS_PER_STEP * DEFAULT_STEPS) + "[]]")) == 42201
