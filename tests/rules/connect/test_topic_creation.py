"""KIP-158: the first group whose patterns hold says how a topic is made; the default group is for all others."""

import pytest

from ottla.connect.topic_creation import CreationRule, creation_rules

CONFIG = {
    "topic.creation.groups": "compacted",
    "topic.creation.default.replication.factor": "3",
    "topic.creation.default.partitions": "5",
    "topic.creation.compacted.include": "status.*, config",
    "topic.creation.compacted.exclude": "status-log",
    "topic.creation.compacted.partitions": "1",
    "topic.creation.compacted.cleanup.policy": "compact",
}
COMPACTED = CreationRule(("status.*", "config"), ("status-log",), 1, 3, {"cleanup.policy": "compact"})
USUAL = CreationRule((".*",), (), 5, 3, {})


def test_groups_inherit_what_they_do_not_say_from_the_default_group() -> None:
    assert creation_rules(CONFIG) == (COMPACTED, USUAL)


@pytest.mark.parametrize(
    ("topic", "rule"), [("status-1", COMPACTED), ("config", COMPACTED), ("status-log", USUAL), ("configs", USUAL)]
)
def test_the_first_group_that_matches_counts(topic: str, rule: CreationRule) -> None:
    assert next(each for each in creation_rules(CONFIG) if each.matches(topic)) == rule


def test_without_a_default_replication_factor_brokers_decide() -> None:
    assert creation_rules({"topic.creation.groups": "a"}) == ()
