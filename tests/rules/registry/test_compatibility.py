"""Which versions each level looks at, in which direction, and what is said."""

import pytest

from ottla.registry.entities import ConfigValue, Metadata
from ottla.registry.machine import commands as c
from ottla.registry.machine.parsing import COMPARISONS, TakesLong
from ottla.registry.machine.refusals import Refusal
from ottla.registry.schemas.base import DEFAULT_STEPS
from tests.rules.registry.scene import Scene, register, with_rules
from tests.support.toy_language import toy

NARROW, WIDE = toy("a"), toy("a", "b")
"""Who reads NARROW can read what was written with WIDE, and not the other way round."""


@pytest.mark.parametrize(
    ("level", "narrowing", "widening"),
    [
        ("NONE", True, True),
        ("BACKWARD", True, False),
        ("BACKWARD_TRANSITIVE", True, False),
        ("FORWARD", False, True),
        ("FORWARD_TRANSITIVE", False, True),
        ("FULL", False, False),
        ("FULL_TRANSITIVE", False, False),
    ],
)
def test_a_level_says_who_must_be_able_to_read_whom(level: str, narrowing: bool, widening: bool) -> None:
    for older, newer, allowed in ((WIDE, NARROW, narrowing), (NARROW, WIDE, widening)):
        scene = Scene()
        scene.tell(c.PutConfig("", {"compatibility_level": level}))
        scene.register("s", older)
        reply = scene.tell(register("s", newer))
        assert (not isinstance(reply, Refusal)) == allowed, reply
        if isinstance(reply, Refusal):
            assert reply.code == 40901


@pytest.mark.parametrize(("level", "allowed"), [("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)])
def test_only_the_transitive_levels_look_behind_the_latest(level: str, allowed: bool) -> None:
    scene = Scene()
    scene.tell(c.PutConfig("", {"compatibility_level": level}))
    scene.register("s", toy("a"))
    scene.register("s", toy("a", "b?"))
    assert isinstance(scene.tell(register("s", toy("a", "b"))), Refusal) != allowed


def test_deleted_versions_are_not_looked_at() -> None:
    scene = Scene()
    scene.register("s", NARROW)
    scene.tell(c.DeleteVersion("s", 1))
    assert scene.register("s", toy("z")).version == 2


def test_another_language_is_incompatible() -> None:
    scene = Scene()
    scene.register("s", NARROW)
    reply = scene.tell(register("s", toy("a", "c?"), schema_type="JSON"))
    assert isinstance(reply, Refusal) and "different schema type" in reply.message


def test_only_versions_of_the_same_group_are_compared() -> None:
    scene = Scene()
    scene.tell(c.PutConfig("s", {"compatibility_group": "major", "compatibility_level": "BACKWARD"}))
    one, two = (Metadata(properties={"major": number}) for number in "12")
    scene.register("s", NARROW, metadata=one)
    assert scene.refused(register("s", WIDE, metadata=one)) == 40901
    assert scene.register("s", WIDE, metadata=two).version == 2


def test_force_skips_the_check() -> None:
    scene = Scene()
    scene.register("s", NARROW)
    assert scene.register("s", WIDE, force=True).version == 2


def test_the_message_has_confluents_words_first_and_ends_with_the_level() -> None:
    scene = Scene()
    scene.register("s", NARROW)
    reply = scene.tell(register("s", WIDE))
    assert isinstance(reply, Refusal)
    assert reply.message == (
        'Schema being registered is incompatible with an earlier schema for subject "s", details: '
        "[{errorType:'MISSING', field:'b'}, {oldSchemaVersion: 1}, "
        f"{{oldSchema: '{NARROW}'}}, {{hint: 'write b as int?'}}, "
        "{validateFields: 'false', compatibility: 'BACKWARD'}]"
    )


def test_lenient_reaches_the_language() -> None:
    scene = Scene()
    scene.tell(c.PutConfig("s", {"compatibility_policy": "LENIENT"}))
    scene.register("s", NARROW)
    assert scene.register("s", toy("a", "lenient")).version == 2


def test_a_comparison_that_takes_too_long_is_given_up() -> None:
    scene = with_rules(steps=1_000)
    scene.register("s", NARROW)
    reply = scene.tell(register("s", toy("a", deep=2_000)))
    assert isinstance(reply, Refusal) and reply.code == 42201
    assert "too complex" in reply.message


def test_a_check_against_given_versions_uses_the_config_in_force() -> None:
    scene = Scene()
    first = scene.register("s", NARROW)
    sent = c.Sent(WIDE)
    assert len(scene.machine.incompatibilities("s", sent, [first], normalize=False)) == 5
    assert scene.machine.incompatibilities("s", sent, [], normalize=False) == []
    assert scene.machine.config_in_force("s") == ConfigValue(compatibility_level="BACKWARD")


def test_all_comparisons_of_a_check_have_one_limit() -> None:
    """Each is within its own, and there may be thousands of versions: meanwhile nobody else can write."""
    scene = Scene()
    scene.tell(c.PutConfig("", {"compatibility_level": "NONE"}))
    large = DEFAULT_STEPS - 10
    for number in range(COMPARISONS):
        scene.register("s", toy(f"x{number}?"))
    scene.tell(c.PutConfig("", {"compatibility_level": "BACKWARD_TRANSITIVE"}))
    scene.register("s", toy("y?", deep=large - 100))
    assert scene.refused(register("s", toy("z?", deep=large))) == 42201


def test_in_a_hurry_many_small_comparisons_take_long_too() -> None:
    scene = Scene()
    scene.tell(c.PutConfig("", {"compatibility_level": "BACKWARD_TRANSITIVE"}))
    quick = scene.machine.in_a_hurry(100)
    for number in range(10):
        assert not isinstance(quick.decide(register("s", toy(f"y{number}?"))).reply, Refusal)
        scene.register("s", toy(f"x{number}?"))
        if number == 4:
            assert not isinstance(quick.decide(register("s", toy("z?", deep=10))).reply, Refusal)
    with pytest.raises(TakesLong):
        quick.decide(register("s", toy("z?", deep=10)))
