"""KIP-158: the first group whose patterns hold says how a topic is made; the default group is for all others."""

from dataclasses import replace

import pytest

from ottla.connect.jobs.source_task import SourceTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import ConfigRefused
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


def test_a_pattern_that_would_backtrack_without_end_does_not() -> None:
    (bomb, _) = creation_rules({**CONFIG, "topic.creation.compacted.include": "(a+)+,(?!x)y.*"})
    assert not bomb.matches("a" * 40 + "!")
    assert bomb.matches("yes")
    with pytest.raises(ValueError, match="can take for ever"):
        creation_rules({**CONFIG, "topic.creation.compacted.include": "(?!x)(a+)+"})


def test_a_worker_may_leave_topics_to_the_brokers_whatever_connectors_say() -> None:
    config = {
        "connector.class": "datagen",
        "quickstart": "users",
        "kafka.topic": "t",
        "topic.creation.default.include": "(",
    }
    spec = JobSpec("c", config, "", "", "", "")
    with pytest.raises(ConfigRefused, match="is no regular expression"):
        SourceTask(spec)
    SourceTask(replace(spec, topic_creation=False)).close()


def test_what_is_not_said_is_left_to_the_brokers() -> None:
    assert creation_rules({"topic.creation.default.partitions": "5"}) == (CreationRule((".*",), (), 5, -1, {}),)


def test_where_nothing_is_said_brokers_decide() -> None:
    assert creation_rules({"topic.creation.groups": "a"}) == ()
