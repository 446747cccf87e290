"""Config: what is set, what is in force, what a change leaves; contexts and aliases."""

from ottla.registry.entities import ConfigValue, Metadata
from ottla.registry.journal.codec import decode
from ottla.registry.machine import commands as c
from ottla.registry.machine import config, contexts, lookups
from ottla.registry.machine import records as r
from ottla.registry.machine.lookups import Which
from tests.rules.registry.scene import Scene, written
from tests.support.toy_language import toy

A = toy("a")


def level(scene: Scene, subject: str) -> str | None:
    return scene.machine.config_in_force(subject).compatibility_level


def test_a_change_is_laid_over_what_is_set_and_null_takes_a_key_away() -> None:
    scene = Scene()
    scene.tell(c.PutConfig("s", {"compatibility_level": "full", "normalize": True}))
    assert scene.tell(c.PutConfig("s", {"compatibility_group": "g", "normalize": None})) == ConfigValue(
        compatibility_level="FULL", compatibility_group="g"
    )


def test_levels_are_taken_in_any_case_and_other_words_refused() -> None:
    scene = Scene()
    assert (
        scene.tell(c.PutConfig("", {"compatibility_level": "full_Transitive"})).compatibility_level == "FULL_TRANSITIVE"
    )
    assert scene.refused(c.PutConfig("", {"compatibility_level": "SIDEWARD"})) == 42203


def test_a_policy_that_nobody_knows_counts_as_none() -> None:
    scene = Scene()
    assert scene.tell(c.PutConfig("s", {"compatibility_policy": "lenient"})).compatibility_policy == "LENIENT"
    assert scene.tell(c.PutConfig("s", {"compatibility_policy": "SOFT"})).compatibility_policy is None


def test_each_key_comes_from_the_nearest_that_sets_it() -> None:
    scene = Scene()
    scene.tell(c.PutConfig("", {"compatibility_level": "FULL", "normalize": True}))
    scene.tell(c.PutConfig("s", {"compatibility_level": "NONE"}))
    assert scene.machine.config_in_force("s") == ConfigValue(compatibility_level="NONE", normalize=True)


def test_another_context_does_not_inherit_the_global_config_but_that_of_all_contexts() -> None:
    scene = Scene()
    scene.tell(c.PutConfig("", {"compatibility_level": "FULL"}))
    assert (level(scene, "s"), level(scene, ":.eu:s")) == ("FULL", "BACKWARD")
    scene.tell(c.PutConfig(":.__GLOBAL:", {"compatibility_level": "FORWARD"}))
    assert (level(scene, "s"), level(scene, ":.eu:s")) == ("FULL", "FORWARD")
    scene.tell(c.PutConfig(":.eu:", {"compatibility_level": "NONE"}))
    assert level(scene, ":.eu:s") == "NONE"


def test_what_a_subject_sets_is_told_with_a_level_even_if_it_sets_none() -> None:
    scene = Scene()
    assert config.own(scene.machine.state, "s", "BACKWARD") is None
    scene.tell(c.PutConfig("s", {"alias": "t"}))
    assert config.own(scene.machine.state, "s", "BACKWARD") == ConfigValue(alias="t", compatibility_level="BACKWARD")


def test_a_delete_tells_what_was_set() -> None:
    scene = Scene()
    assert scene.refused(c.DeleteConfig("s")) == 40401
    scene.tell(c.PutConfig("s", {"compatibility_level": "NONE"}))
    assert scene.tell(c.DeleteConfig("s")) == ConfigValue(compatibility_level="NONE")
    assert scene.tell(c.DeleteConfig("")) == ConfigValue(compatibility_level="BACKWARD")


def test_both_forms_of_the_global_key_are_read_and_one_is_left() -> None:
    scene = Scene()
    old = decode(b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}')
    assert old is not None
    scene.write(old)
    assert level(scene, "s") == "FULL"
    scene.tell(c.PutConfig("", {"compatibility_level": "NONE"}))
    assert [key for key, value, _ in scene.topic if value is None] == [b'{"keytype":"CONFIG","subject":null,"magic":0}']
    assert level(scene.restarted(compacted=True), "s") == "NONE"
    scene.tell(c.PutConfig("", {"compatibility_level": "FULL"}))
    assert len(written(scene, r.ConfigGone)) == 1


def test_defaults_and_overrides_are_put_around_what_is_sent() -> None:
    scene = Scene()
    scene.tell(
        c.PutConfig(
            "s",
            {
                "default_metadata": Metadata(properties={"team": "a", "tier": "1"}),
                "override_metadata": Metadata(properties={"tier": "9"}, tags={"x": ["PII"]}),
            },
        )
    )
    made = scene.register("s", A, metadata=Metadata(properties={"team": "b", "tier": "2"}, tags={"x": ["OWN"]}))
    assert made.metadata == Metadata(tags={"x": ["OWN", "PII"]}, properties={"team": "b", "tier": "9"})


def test_an_alias_stands_for_a_subject_of_its_own_context() -> None:
    scene = Scene()
    scene.tell(c.PutConfig("old", {"alias": "new"}))
    scene.tell(c.PutConfig(":.eu:old", {"alias": "new"}))
    scene.tell(c.PutConfig("far", {"alias": ":.us:new"}))
    meant = scene.machine.meant
    assert [meant(name) for name in ("old", ":.eu:old", "far", "new")] == ["new", ":.eu:new", ":.us:new", "new"]
    assert lookups.aliases(scene.machine.state) == {"new": ["old"], ":.eu:new": [":.eu:old"], ":.us:new": ["far"]}


def test_a_context_is_deleted_when_no_subject_is_left_in_it() -> None:
    scene = Scene()
    scene.register(":.eu:s", A)
    scene.tell(c.PutConfig(":.eu:", {"compatibility_level": "NONE"}))
    assert contexts.all_contexts(scene.machine.state) == [".", ".eu"]
    assert scene.refused(c.DeleteContext(".eu")) == 42211
    scene.tell(c.DeleteSubject(":.eu:s"))
    assert scene.refused(c.DeleteContext(".eu")) == 42211
    scene.tell(c.DeleteSubject(":.eu:s", permanent=True))
    assert scene.tell(c.DeleteContext(".eu")) is None
    assert contexts.all_contexts(scene.machine.state) == ["."]
    assert scene.tell(c.DeleteContext(".nowhere")) is None


def test_subjects_are_listed_by_prefix_over_contexts() -> None:
    scene = Scene()
    for name in ("alpha", "beta", ":.eu:alpha"):
        scene.register(name, A)
    scene.tell(c.DeleteSubject("beta"))
    state = scene.machine.state
    assert lookups.subjects(state, ":*:", Which.LIVE) == [":.eu:alpha", "alpha"]
    assert lookups.subjects(state, "", Which.ALL) == ["alpha", "beta"]
    assert lookups.subjects(state, ":.:", Which.DELETED) == ["beta"]
    assert lookups.subjects(state, ":*:al", Which.LIVE) == [":.eu:alpha", "alpha"]
    assert lookups.subjects(state, ":.eu:", Which.LIVE) == [":.eu:alpha"]
