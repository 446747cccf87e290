"""What an application finds of its state on the brokers when it starts."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.client import admin, groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.streams import Consumed, Serdes, StreamsBuilder
from ottla.streams.plan.planner import plan
from ottla.streams.record import Record
from ottla.streams.run import topics
from ottla.streams.run.changelogs import Note, Span
from ottla.streams.run.recovery import Recovery
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.topology.processor import Processor, ProcessorContext
from ottla.streams.topology.topology import Stores, Topology
from tests.support.patience import eventually

NewTopicName = Callable[[], str]
LIKE_A_WINDOWS = {"cleanup.policy": "compact,delete", "retention.ms": "86400000"}


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("wanted", "configs"),
    [
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact", "retention.ms": None}),
        (
            {"cleanup.policy": "compact", "retention.ms": "-1"},
            {"cleanup.policy": "compact", "retention.ms": "-1"},
        ),
        ({"cleanup.policy": "compact,delete"}, LIKE_A_WINDOWS),
    ],
    ids=["compacted", "with a retention that the user gave", "deleting, as the user wants it"],
)
def test_the_changelog_of_an_own_store_that_loses_what_is_old_is_altered_at_the_start(
    cluster: Cluster, topic: str, wanted: dict[str, str], configs: dict[str, str | None]
) -> None:
    admin.create_topics(cluster, [admin.NewTopic(topic, 1, 1, LIKE_A_WINDOWS)])
    for _ in range(2):
        topics.keep_whole(cluster, [admin.NewTopic(topic, 1, configs=wanted)])
        assert given(cluster, topic) == configs


def given(cluster: Cluster, topic: str) -> dict[str, str | None]:
    told = admin.describe_configs(cluster, admin.TOPIC, [topic])[topic]
    assert not isinstance(told, KafkaError)
    found = {each.name: each.value for each in told if each.config_source == admin.FROM_TOPIC}
    return {name: found.get(name) for name in LIKE_A_WINDOWS}


# ---- lost state


class Keeping(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._store = context.state_store("rows")

    def process(self, record: Record) -> None:
        self._store.put(record.key, record.value)


def table_that_reuses_its_topic(topic: str) -> Topology:
    builder = StreamsBuilder()
    rows = builder.table(topic, Consumed(Serdes.string, Serdes.string), "rows")
    rows.to_stream().to(f"{topic}-out")
    return builder.build(topology_optimization="reuse.ktable.source.topics")


def read_only_store(topic: str) -> Topology:
    store = Stores.key_value("rows", Serdes.string, Serdes.string)
    return Topology().add_read_only_state_store(store, "source", topic, "keep", Keeping)


@pytest.mark.parametrize("build", [table_that_reuses_its_topic, read_only_store])
def test_a_store_without_a_changelog_comes_back_from_what_the_group_has_read_of_its_topic(
    cluster: Cluster, bootstrap: str, topic: str, tmp_path: Path, build: Callable[[str], Topology]
) -> None:
    """Also while somebody else's transaction is open in it."""
    admin.create_topics(cluster, [admin.NewTopic(topic, 2, 1)])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for number in (3, 2):
        producer.begin_transaction()
        for _ in range(number):
            producer.produce(topic, b"value", b"key", 0)
        producer.flush()
        if number == 3:
            producer.commit_transaction()
    place = TopicPartition(topic, 0)
    eventually(lambda: not any(groups.commit(cluster, topic, {place: 2}).values()), "the commit")
    assert notes(cluster, topic, tmp_path, build(topic)) == {"0": Note({"rows": topic}, {place: Span(0, 2)}, {})}
    producer.abort_transaction()


def notes(cluster: Cluster, application_id: str, folder: Path, topology: Topology) -> dict[str, Note]:
    """Of an application whose folder is gone."""
    subs = topology.sub_topologies()
    inputs = topics.find_inputs(cluster, application_id, topology.graph, subs)
    directory = StateDirectory(str(folder), application_id)
    return Recovery(cluster, application_id, directory, inputs, subs).notes(plan(subs), frozenset())
