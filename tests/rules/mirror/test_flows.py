"""mm2.properties, as MirrorMaker reads it."""

import pytest

from ottla.mirror.flows import CHECKPOINT, HEARTBEAT, SOURCE, Flow, FlowsError, Mirroring
from ottla.model.properties import parse_properties

_FILE = r"""
clusters = us, eu
us.bootstrap.servers = us1:9092, us2:9092
eu.bootstrap.servers = eu1:9092
us->eu.enabled = true
us->eu.topics = orders.*
topics = everything
replication.factor = 1
emit.checkpoints.interval.seconds = 5
offset.storage.replication.factor = 1
security.protocol = SASL_SSL
us.security.protocol = PLAINTEXT
us.consumer.isolation.level = read_committed
eu.producer.linger.ms = 20
"""


def _mirroring(text: str = _FILE) -> Mirroring:
    return Mirroring.of(parse_properties(text))


def test_a_flow_that_copies_nothing_still_has_heartbeats() -> None:
    assert _mirroring().flows() == [Flow("us", "eu"), Flow("eu", "us")]
    assert _mirroring().flows(["eu"]) == [Flow("us", "eu")]


def test_without_heartbeats_only_flows_that_copy_are_run() -> None:
    assert _mirroring(_FILE + "emit.heartbeats.enabled = false\n").flows() == [Flow("us", "eu")]
    assert _mirroring(_FILE + "eu->us.emit.heartbeats.enabled = false\n").flows() == [Flow("us", "eu")]


def test_a_connectors_configuration_has_its_flow_and_how_both_clusters_are_reached() -> None:
    assert _mirroring().connector(Flow("us", "eu"), SOURCE) == {
        "name": "MirrorSourceConnector",
        "connector.class": SOURCE,
        "source.cluster.alias": "us",
        "target.cluster.alias": "eu",
        "enabled": "true",
        "topics": "orders.*",
        "replication.factor": "1",
        "emit.checkpoints.interval.seconds": "5",
        "offset.storage.replication.factor": "1",
        "security.protocol": "SASL_SSL",
        "source.cluster.bootstrap.servers": "us1:9092, us2:9092",
        "source.producer.bootstrap.servers": "us1:9092, us2:9092",
        "source.consumer.bootstrap.servers": "us1:9092, us2:9092",
        "source.admin.bootstrap.servers": "us1:9092, us2:9092",
        "source.cluster.security.protocol": "PLAINTEXT",
        "source.producer.security.protocol": "PLAINTEXT",
        "source.consumer.security.protocol": "PLAINTEXT",
        "source.admin.security.protocol": "PLAINTEXT",
        "source.consumer.isolation.level": "read_committed",
        "target.cluster.bootstrap.servers": "eu1:9092",
        "target.producer.bootstrap.servers": "eu1:9092",
        "target.consumer.bootstrap.servers": "eu1:9092",
        "target.admin.bootstrap.servers": "eu1:9092",
        "target.cluster.security.protocol": "SASL_SSL",
        "target.producer.security.protocol": "SASL_SSL",
        "target.consumer.security.protocol": "SASL_SSL",
        "target.admin.security.protocol": "SASL_SSL",
        "target.producer.linger.ms": "20",
    }


def test_a_flow_the_other_way_is_turned_off_and_has_its_aliases_turned_round() -> None:
    config = _mirroring().connector(Flow("eu", "us"), HEARTBEAT)
    assert (config["enabled"], config["source.cluster.alias"], config["topics"]) == ("false", "eu", "everything")
    assert _mirroring().connector(Flow("us", "eu"), CHECKPOINT)["name"] == "MirrorCheckpointConnector"


def test_a_flows_worker_keeps_its_topics_on_the_target() -> None:
    worker = _mirroring().worker(Flow("us", "eu"))
    assert worker["bootstrap.servers"] == "eu1:9092"
    assert worker["group.id"] == "us-mm2"
    assert worker["config.storage.topic"] == "mm2-configs.us.internal"
    assert worker["offset.storage.topic"] == "mm2-offsets.us.internal"
    assert worker["status.storage.topic"] == "mm2-status.us.internal"
    assert worker["offset.storage.replication.factor"] == "1"
    assert worker["key.converter"].endswith("ByteArrayConverter")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "clusters is missing"),
        ("clusters=a,b\na.bootstrap.servers=x:1", "b.bootstrap.servers is missing"),
        (
            "clusters=a,b\nbootstrap.servers=x:1\na->c.enabled=true",
            "a->c.enabled: a flow goes between two of clusters=a,b",
        ),
        ("clusters=a,b\nbootstrap.servers=x:1", "no flow is enabled: say a->b.enabled=true or b->a.enabled=true"),
    ],
)
def test_a_file_without_a_flow_is_refused_with_what_is_missing(text: str, said: str) -> None:
    with pytest.raises(FlowsError, match=said.replace("+", r"\+")):
        _mirroring(text)
