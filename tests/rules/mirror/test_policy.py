"""Names of topics on the other cluster."""

import pytest

from ottla.mirror.policy import DEFAULT, IDENTITY, IdentityPolicy, Policy, policy_of
from ottla.mirror.selection import Names, Selection, groups_of, topics_of


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("us.orders", "us", "orders", "orders"),
        ("eu.us.orders", "eu", "us.orders", "orders"),
        ("us.", None, None, "us."),
        ("us..", None, None, "us.."),
        (".orders", "", "orders", "orders"),
    ],
)
def test_the_default_policy_reads_where_a_topic_came_from(
    topic: str, source: str | None, upstream: str | None, original: str
) -> None:
    policy = Policy()
    assert (policy.source_of(topic), policy.upstream_topic(topic), policy.original_topic(topic)) == (
        source,
        upstream,
        original,
    )


def test_a_topic_that_came_through_the_target_would_come_back_to_it() -> None:
    policy = Policy()
    assert policy.is_cycle("eu.us.orders", "us")
    assert policy.is_cycle("us.orders", "us")
    assert not policy.is_cycle("eu.us.orders", "asia")
    assert not policy.is_cycle("orders", "us")


def test_the_identity_policy_keeps_all_names_but_those_of_heartbeats() -> None:
    policy = IdentityPolicy(source_alias="us")
    assert policy.remote_topic("us", "orders") == "orders"
    assert policy.remote_topic("us", "heartbeats") == "us.heartbeats"
    assert (policy.source_of("orders"), policy.upstream_topic("orders")) == ("us", "orders")
    assert (policy.source_of("us.heartbeats"), policy.upstream_topic("us.heartbeats")) == ("us", "heartbeats")
    assert not policy.is_cycle("orders", "eu")
    assert policy.is_heartbeats("us.heartbeats")


def test_internal_topics_have_the_separator_unless_that_is_turned_off() -> None:
    dashes = policy_of({"replication.policy.separator": "-"})
    assert dashes.offset_syncs_topic("eu") == "mm2-offset-syncs-eu-internal"
    assert dashes.checkpoints_topic("us") == "us-checkpoints-internal"
    dots = policy_of(
        {"replication.policy.separator": "-", "replication.policy.internal.topic.separator.enabled": "false"}
    )
    assert dots.offset_syncs_topic("eu") == "mm2-offset-syncs.eu.internal"
    assert dots.checkpoints_topic("us") == "us.checkpoints.internal"
    assert dots.remote_topic("us", "orders") == "us-orders"


def test_policies_are_known_by_their_class_names() -> None:
    assert policy_of({}) == policy_of({"replication.policy.class": DEFAULT}) == Policy()
    named = {"replication.policy.class": IDENTITY, "source.cluster.alias": "us"}
    assert policy_of(named) == IdentityPolicy(source_alias="us")
    with pytest.raises(ValueError, match=r"com\.example\.Mine is not known"):
        policy_of({"replication.policy.class": "com.example.Mine"})


def test_lists_are_names_and_patterns_that_match_as_a_whole() -> None:
    names = Names("orders, pay.*", "payroll")
    assert [name for name in ("orders", "orders2", "payments", "payroll") if name in names] == ["orders", "payments"]
    assert "anything" not in Names("", "")


def test_an_alternative_in_a_pattern_stays_inside_of_it() -> None:
    assert "b-x" not in Names("a|b, c", "")


def test_without_lists_everything_is_copied_but_internal_topics_and_groups_of_tools() -> None:
    topics, groups = topics_of({}), groups_of({})
    assert [name for name in ("orders", "mm2-x.internal", "a.replica", "__x") if name in topics] == ["orders"]
    assert [name for name in ("app", "console-consumer-1", "connect-x", "__g") if name in groups] == ["app"]


def test_a_flow_copies_neither_its_own_topics_nor_what_would_come_back() -> None:
    flow = Selection(Policy(), Names(".*", ""), target="eu", heartbeats=True)
    topics = [
        "orders",
        "eu.orders",
        "asia.orders",
        "us.checkpoints.internal",
        "mm2-offset-syncs.eu.internal",
        "__x",
        ".y",
    ]
    assert flow.of(topics) == ["asia.orders", "orders"]


def test_heartbeats_are_copied_though_no_list_names_them() -> None:
    assert Selection(Policy(), Names("orders", ""), "eu", heartbeats=True).of(["heartbeats", "x"]) == ["heartbeats"]
    assert Selection(Policy(), Names("orders", ""), "eu", heartbeats=False).of(["heartbeats", "x"]) == []
