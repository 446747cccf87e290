"""Questions by schema, id, GUID and metadata."""

import pytest

from ottla.registry.entities import Metadata
from ottla.registry.machine import commands as c
from ottla.registry.machine import lookups
from ottla.registry.machine.lookups import Which
from ottla.registry.machine.refusals import Refusal
from ottla.registry.machine.versions import number_of
from ottla.registry.schemas.base import Reference
from tests.rules.registry.scene import Scene
from tests.support.toy_language import toy

A, B = toy("a"), toy("a", "b?")


def find(scene: Scene, subject: str, sent: c.Sent, *, normalize: bool = False, deleted: bool = False) -> int:
    try:
        return lookups.by_schema(scene.machine, subject, sent, normalize=normalize, deleted=deleted).version
    except Refusal as refusal:
        return refusal.code


def test_a_schema_is_found_by_its_canonical_text() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("s", B)
    assert find(scene, "s", c.Sent(f" {B} ")) == 2
    assert find(scene, "s", c.Sent(toy("z"))) == 40403
    assert find(scene, "t", c.Sent(A)) == 40401
    assert find(scene, "s", c.Sent("no json")) == 42201
    assert find(scene, "s", c.Sent("")) == 40403


def test_deleted_schemas_are_found_if_asked_for() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("s", B)
    scene.tell(c.DeleteVersion("s", 1))
    assert find(scene, "s", c.Sent(A)) == 40403
    assert find(scene, "s", c.Sent(A), deleted=True) == 1


def test_normal_schemas_are_compared_if_asked_for_or_configured() -> None:
    scene = Scene()
    made = scene.register("s", '{"x":1,"fields":{"a":"int"}}', normalize=True)
    assert made.text == '{"fields":{"a":"int"},"x":1}'
    assert find(scene, "s", c.Sent('{"x":1,"fields":{"a":"int"}}')) == 40403
    assert find(scene, "s", c.Sent('{"x":1,"fields":{"a":"int"}}'), normalize=True) == 1
    scene.tell(c.PutConfig("s", {"normalize": True}))
    assert find(scene, "s", c.Sent('{"x":1,"fields":{"a":"int"}}')) == 1


def test_normal_references_are_sorted_and_each_is_there_once() -> None:
    scene = Scene()
    scene.register("x", A)
    scene.register("y", B)
    references = (Reference("b", "y", 1), Reference("a", "x", 1), Reference("b", "y", 1))
    made = scene.register("s", toy("z"), references=references, normalize=True)
    assert made.references == (Reference("a", "x", 1), Reference("b", "y", 1))


def test_a_schema_is_found_without_the_metadata_that_the_latest_carries() -> None:
    scene = Scene()
    scene.register("s", A, metadata=Metadata(properties={"owner": "me"}))
    assert find(scene, "s", c.Sent(A)) == 1
    assert find(scene, "s", c.Sent(A, metadata=Metadata(properties={"owner": "you"}))) == 40403


def test_a_schema_with_its_references_written_out_is_the_same() -> None:
    scene = Scene()
    scene.register("base", toy("x"))
    scene.register("s", toy("a", uses=["b"]), references=(Reference("b", "base", 1),))
    assert find(scene, "s", c.Sent(toy("x", "a"))) == 1


def test_what_is_not_in_the_default_context_is_looked_for_in_the_others() -> None:
    scene = Scene()
    scene.register(":.eu:s", A)
    assert find(scene, "s", c.Sent(A)) == 1
    assert lookups.version(scene.machine.state, "s", 1, deleted=False).subject == ":.eu:s"
    assert find(scene, ":.us:s", c.Sent(A)) == 40401


def test_an_id_is_looked_for_where_the_hint_says_and_then_in_its_context() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("t", A)
    scene.register(":.eu:u", B)
    state = scene.machine.state
    assert lookups.by_id(state, 1, "t").subject == "t"
    assert lookups.by_id(state, 1, "nobody").subject == "s"
    assert lookups.by_id(state, 1, ":.eu:").subject == ":.eu:u"
    assert lookups.by_id(state, 1, "u").subject == ":.eu:u"
    with pytest.raises(Refusal, match="Schema 2 not found"):
        lookups.by_id(state, 2, "")


def test_the_uses_of_an_id_are_told_with_deleted_ones_if_asked_for() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("t", A)
    scene.tell(c.DeleteSubject("t"))
    state = scene.machine.state
    assert [each.subject for each in lookups.places_of_id(state, 1, "", deleted=False)] == ["s"]
    assert [each.subject for each in lookups.places_of_id(state, 1, "", deleted=True)] == ["s", "t"]


def test_a_guid_is_the_same_in_all_contexts() -> None:
    scene = Scene()
    scene.register("first", toy("z"))
    made = scene.register("s", A)
    scene.register(":.eu:s", A)
    state = scene.machine.state
    assert lookups.ids_of_guid(state, made.guid.upper()) == [(".", 2), (".eu", 1)]
    assert lookups.by_guid(state, made.guid).text == A
    with pytest.raises(Refusal, match="not found"):
        lookups.by_guid(state, "0" * 32)


def test_the_latest_with_all_these_properties_is_found() -> None:
    scene = Scene()
    scene.register("s", A, metadata=Metadata(properties={"app": "1", "env": "x"}))
    scene.register("s", B, metadata=Metadata(properties={"app": "2", "env": "x"}))
    state = scene.machine.state
    assert lookups.latest_with(state, "s", {"env": "x"}, deleted=False).version == 2
    assert lookups.latest_with(state, "s", {"app": "1", "env": "x"}, deleted=False).version == 1
    with pytest.raises(Refusal, match="Schema not found"):
        lookups.latest_with(state, "s", {"app": "3"}, deleted=False)


def test_versions_are_listed_with_deleted_ones_as_asked() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.register("s", B)
    scene.tell(c.DeleteVersion("s", 1))
    state = scene.machine.state
    listed = {which: lookups.version_numbers(state, "s", which, negative=False) for which in Which}
    assert listed == {Which.LIVE: [2], Which.ALL: [1, 2], Which.DELETED: [1]}
    assert lookups.version_numbers(state, "s", Which.LIVE, negative=True) == [-1, 2]
    with pytest.raises(Refusal, match="Subject 't' not found"):
        lookups.version_numbers(state, "t", Which.ALL, negative=False)


def test_latest_of_a_subject_that_is_all_deleted_is_not_found_even_with_deleted() -> None:
    scene = Scene()
    scene.register("s", A)
    scene.tell(c.DeleteSubject("s"))
    with pytest.raises(Refusal, match="Version -1 not found"):
        lookups.version(scene.machine.state, "s", -1, deleted=True)


@pytest.mark.parametrize(
    ("said", "number"), [("1", 1), ("latest", -1), ("-1", -1), (" Latest ", -1), ("2147483647", 2**31 - 1)]
)
def test_a_version_is_a_number_or_latest(said: str, number: int) -> None:
    assert number_of(said) == number


@pytest.mark.parametrize("said", ["0", "-2", "x", "", "2147483648", "1.0", "٣", "9" * 50])
def test_anything_else_is_no_version(said: str) -> None:
    with pytest.raises(Refusal, match="not a valid version id"):
        number_of(said)
