"""What a mirror does to its target, between two clusters over the wire."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from ottla.client.admin import TOPIC, describe_configs
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.errors import KafkaError
from ottla.client.groups import commit
from ottla.mirror.checkpoints import Committed
from ottla.mirror.following import Follower, committed_of, groups_of, is_at_work
from ottla.mirror.formats import Checkpoint, Heartbeat, OffsetSync
from ottla.mirror.policy import policy_of
from ottla.mirror.remote import Remote
from ottla.mirror.selection import Selection, TopicSettings, topics_of
from ottla.mirror.sides import SideError, connected
from ottla.mirror.standing import FlowTopics, GroupStanding, Standing, TopicStanding
from ottla.mirror.syncs import SyncStore
from ottla.mirror.tending import Tending
from ottla.model.ids import TopicPartition
from ottla.testing import Cluster


@pytest.fixture(scope="module")
def us() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def eu() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def config(us: Cluster, eu: Cluster) -> dict[str, str]:
    us.reset()
    eu.reset()
    return {
        "source.cluster.alias": "us",
        "target.cluster.alias": "eu",
        "source.cluster.bootstrap.servers": us.bootstrap_servers,
        "target.cluster.bootstrap.servers": eu.bootstrap_servers,
    }


@pytest.fixture
def tending(config: dict[str, str]) -> Iterator[Tending]:
    policy = policy_of(config)
    selection = Selection(policy, topics_of(config), "eu", heartbeats=True)
    remote = Remote(policy, selection, TopicSettings.of(config), "us")
    with closing(connected(config, "source")) as source, closing(connected(config, "target")) as target:
        yield Tending(remote, source, target, replication_factor=1)


def _own_settings(cluster: Client, topic: str) -> dict[str, str | None]:
    answer = describe_configs(cluster, TOPIC, [topic])[topic]
    assert not isinstance(answer, KafkaError)
    return {setting.name: setting.value for setting in answer if setting.config_source == 1}


def test_the_target_is_given_the_sources_topics_with_their_partitions_and_settings(
    us: Cluster, eu: Cluster, tending: Tending
) -> None:
    us.create_topic("orders", partitions=3, retention_ms=1000)
    us.create_topic("eu.back", partitions=1)
    assert tending.refreshed() == {"orders": 3}
    assert len(tending.target.partitions("us.orders")) == 3
    assert _own_settings(tending.target, "us.orders") == {"retention.ms": "1000"}


def test_a_topic_that_grows_and_changes_is_followed(us: Cluster, eu: Cluster, tending: Tending) -> None:
    us.create_topic("orders", partitions=3, retention_ms=1000)
    eu.create_topic("us.orders", partitions=1, retention_ms=5, segment_ms=7)
    assert tending.refreshed() == {"orders": 3}
    tending.sync_settings(["orders"])
    assert _own_settings(tending.target, "us.orders") == {"retention.ms": "1000"}


def test_a_topic_that_the_target_cannot_hold_stops_no_other(
    us: Cluster, eu: Cluster, tending: Tending, caplog: pytest.LogCaptureFixture
) -> None:
    us.create_topic("orders", partitions=1)
    us.create_topic("n" * 249, partitions=1)
    assert tending.refreshed() == {"orders": 1}
    assert "could not be made on the target" in caplog.text


def test_a_source_without_acls_is_asked_and_told_of_once(tending: Tending, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    tending.sync_acls()
    tending.sync_acls()
    assert caplog.text.count("the source has no ACLs to take over") == 1


def test_syncs_are_read_to_the_end_of_their_topic_and_strangers_in_it_are_passed_over(
    us: Cluster, config: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    us.create_topic("mm2-offset-syncs.eu.internal", partitions=1, cleanup_policy="compact")
    store = SyncStore()
    with closing(connected(config, "source")) as source:
        follower = Follower(
            source, "mm2-offset-syncs.eu.internal", lambda key, value: store.replay(OffsetSync.read(key, value))
        )
        follower.catch_up()
        for sync in (OffsetSync("orders", 0, 10, 5), OffsetSync("orders", 0, 20, 9)):
            us.produce("mm2-offset-syncs.eu.internal", sync.value(), key=sync.key())
        us.produce("mm2-offset-syncs.eu.internal", b"x", key=b"y")
        follower.catch_up()
        store.complete = True
        assert store.translate("orders", 0, 20) == 9
        assert "has something else at offset 2" in caplog.text
        us.produce(
            "mm2-offset-syncs.eu.internal",
            OffsetSync("orders", 0, 30, 15).value(),
            key=OffsetSync("orders", 0, 0, 0).key(),
        )
        follower.catch_up()
        assert store.translate("orders", 0, 30) == 15


def test_groups_and_their_offsets_are_found_and_idle_ones_are_told_apart(us: Cluster, config: dict[str, str]) -> None:
    us.create_topic("orders", partitions=1)
    us.produce("orders", "a", "b")
    with closing(connected(config, "source")) as source:
        commit(source, "app", {TopicPartition("orders", 0): 2})
        assert groups_of(source) == ["app"]
        assert committed_of(source, "app") == {("orders", 0): Committed(2)}
        assert not is_at_work(source, "app")
        assert not is_at_work(source, "nobody")
        assert committed_of(source, "nobody") == {}


def test_a_side_without_an_address_is_refused_by_the_name_that_is_missing(config: dict[str, str]) -> None:
    del config["target.cluster.bootstrap.servers"]
    with pytest.raises(SideError, match=r"target\.cluster\.bootstrap\.servers is missing"):
        connected(config, "target")


def test_how_a_flow_stands_is_told_by_its_topics_though_nothing_runs(
    us: Cluster, eu: Cluster, tending: Tending
) -> None:
    us.create_topic("orders", partitions=2)
    us.produce("orders", *"abcde", partition=0)
    eu.create_topic("us.orders", partitions=2)
    eu.create_topic("mm2-offsets.us.internal", partitions=5, cleanup_policy="compact")
    eu.create_topic("us.checkpoints.internal", partitions=1, cleanup_policy="compact")
    eu.create_topic("us.heartbeats", partitions=1)
    standing = Standing(
        tending.remote.policy,
        tending.remote.selection,
        "us",
        tending.source,
        tending.target,
        FlowTopics("mm2-offsets.us.internal", "us.checkpoints.internal", "us.heartbeats"),
    )
    assert standing.heartbeat_age_ms(1_000) is None
    assert standing.of_groups("eu") == []
    eu.produce(
        "mm2-offsets.us.internal",
        b'{"offset":2}',
        key=b'["MirrorSourceConnector",{"cluster":"us","partition":0,"topic":"orders"}]',
    )
    checkpoint = Checkpoint("app", "us.orders", 0, 3, 3, "")
    eu.produce("us.checkpoints.internal", checkpoint.value(), key=checkpoint.key())
    heartbeat = Heartbeat("us", "eu", 400)
    eu.produce("us.heartbeats", heartbeat.value(), key=heartbeat.key())
    commit(tending.source, "app", {TopicPartition("orders", 0): 3})

    topics = standing.of_topics("MirrorSourceConnector")
    assert topics == [TopicStanding("orders", 0, "us.orders", 3, 5), TopicStanding("orders", 1, "us.orders", 0, 0)]
    assert [topic.lag for topic in topics] == [2, 0]
    (group,) = standing.of_groups("eu")
    assert group == GroupStanding(checkpoint, committed_upstream=3, committed_target=None)
    assert group.in_step
    assert standing.heartbeat_age_ms(1_000) == 600
    assert standing.failover("app", "eu") == {("us.orders", 0): Committed(3)}
