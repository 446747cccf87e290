"""Rule sets are checked, merged and kept; tags make new versions."""

import pytest

from ottla.registry.entities import Metadata, Rule, RuleSet, sorted_rules
from ottla.registry.machine import commands as c
from ottla.registry.machine.refusals import Refusal
from tests.rules.registry.scene import Scene, register
from tests.support.toy_language import toy

A = toy("a")


def rule(name: str | None = "r", **more: object) -> Rule:
    return Rule(**{"name": name, "type": "CEL", **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (RuleSet(domain_rules=[rule(None)]), "Missing rule name"),
        (RuleSet(domain_rules=[rule("")]), "Empty rule name"),
        (RuleSet(domain_rules=[rule("1a")]), "Illegal initial character"),
        (RuleSet(domain_rules=[rule("a-b")]), "Illegal character"),
        (RuleSet(domain_rules=[rule(), rule()]), "duplicate name 'r'"),
        (RuleSet(migration_rules=[rule(mode="UPGRADE")], domain_rules=[rule(mode="READ")]), "duplicate name 'r'"),
        (RuleSet(domain_rules=[rule(type=None)]), "Missing rule type"),
        (RuleSet(domain_rules=[rule(mode="UPGRADE")]), "Domain rules can only be"),
        (RuleSet(migration_rules=[rule(mode="WRITE")]), "Migration rules can only be"),
        (RuleSet(encoding_rules=[rule(mode="UPDOWN")]), "Encoding rules can only be"),
    ],
)
def test_a_rule_set_that_cannot_be_is_refused(rules: RuleSet, words: str) -> None:
    scene = Scene()
    reply = scene.tell(register("s", A, rules=rules))
    assert isinstance(reply, Refusal) and reply.code == 42210
    assert words in reply.message
    assert scene.refused(c.PutConfig("s", {"default_rule_set": rules})) == 42210


def test_rules_that_cannot_be_are_refused_even_if_their_guid_is_known() -> None:
    """A rule has the same digest whatever it is a rule for."""
    scene = Scene()
    scene.register("s", A, rules=RuleSet(domain_rules=[rule(mode="WRITE")]))
    misplaced = register("s", A, rules=RuleSet(migration_rules=[rule(mode="WRITE")]))
    assert scene.refused(misplaced) == 42210
    assert scene.machine.known(misplaced) is None


def test_rules_are_kept_and_come_back_out_of_the_topic() -> None:
    scene = Scene()
    rules = sorted_rules(RuleSet(domain_rules=[rule(tags=["b", "a"], params={"y": "1", "x": "2"}, expr="true")]))
    made = scene.register("s", A, rules=rules)
    again = scene.restarted(compacted=True).machine.state.version("s", 1)
    assert again is not None
    assert (again.rule_set, again.guid) == (rules, made.guid)
    assert made.guid != Scene().register("s", A).guid


def test_of_rules_with_one_name_the_newer_counts_and_overrides_count_last() -> None:
    scene = Scene()
    scene.tell(
        c.PutConfig(
            "s",
            {
                "default_rule_set": RuleSet(domain_rules=[rule("a", expr="default"), rule("b", expr="default")]),
                "override_rule_set": RuleSet(domain_rules=[rule("c", expr="override")]),
            },
        )
    )
    sent = RuleSet(domain_rules=[rule("b", expr="sent"), rule("c", expr="sent")])
    made = scene.register("s", A, rules=sent).rule_set
    assert made is not None
    assert [(each.name, each.expr) for each in made.domain_rules or ()] == [
        ("a", "default"),
        ("b", "sent"),
        ("c", "override"),
    ]


def test_tags_make_a_new_version_that_says_its_number() -> None:
    scene = Scene()
    scene.register("s", A)
    made = scene.tell(c.ModifyTags("s", 1, 2, tags_to_add={"a": frozenset({"PII"})}))
    assert (made.version, made.text) == (2, toy("a", tags={"a": ["PII"]}))
    assert made.metadata == Metadata(properties={"confluent:version": "2"})
    less = scene.tell(c.ModifyTags("s", 2, 3, tags_to_remove={"a": frozenset({"PII"})}))
    assert (less.version, less.text) == (3, A)
    assert scene.refused(c.ModifyTags("s", 3, 9, tags_to_add={"a": frozenset({"X"})})) == 42201


def test_rules_can_be_merged_into_and_taken_from_the_version_before() -> None:
    scene = Scene()
    scene.register("s", A, rules=RuleSet(domain_rules=[rule("a"), rule("b")]))
    made = scene.tell(c.ModifyTags("s", 1, 2, rules_to_merge=RuleSet(domain_rules=[rule("c")]), rules_to_remove=("a",)))
    assert [each.name for each in made.rule_set.domain_rules] == ["b", "c"]


def test_tags_of_the_latest_version_are_put_into_the_next_if_it_wants_them() -> None:
    scene = Scene()
    scene.register("s", toy("a", tags={"a": ["PII"]}))
    made = scene.register("s", toy("a", "b?"), propagate_tags=True)
    assert made.text == toy("a", "b?", tags={"a": ["PII"]})


def test_a_schema_can_be_registered_with_tags_added() -> None:
    scene = Scene()
    made = scene.register("s", A, tags_to_add={"a": frozenset({"PII"})})
    assert (made.version, made.text) == (1, toy("a", tags={"a": ["PII"]}))
    assert made.property_map == {"confluent:version": "1"}


def test_a_schema_is_found_without_the_number_that_was_put_into_its_metadata() -> None:
    scene = Scene()
    scene.register("s", A, version=1)
    size = len(scene.topic)
    assert scene.register("s", A).version == 1
    assert len(scene.topic) == size
