"""The coordinators' topics are what the coordinators make of them, whoever is the first to ask for one."""

from pathlib import Path

import pytest

from ottla.protocol import messages as m
from ottla.testing import Cluster
from tests.support.wire import Wire

SETTINGS = {
    "num_partitions": 3,
    "offsets_topic_num_partitions": 7,
    "transaction_state_log_num_partitions": 5,
    "share_coordinator_state_topic_num_partitions": 4,
}


@pytest.mark.parametrize(
    ("topic", "partitions", "configs"),
    [
        ("__consumer_offsets", 7, {"cleanup.policy": "compact", "segment.bytes": "104857600"}),
        ("__transaction_state", 5, {"cleanup.policy": "compact", "compression.type": "uncompressed"}),
        ("__share_group_state", 4, {"cleanup.policy": "delete", "retention.ms": "-1"}),
        ("any", 3, {"cleanup.policy": "delete", "segment.bytes": "1073741824"}),
    ],
)
def test_metadata_creates_an_internal_topic_as_its_coordinator_would(
    tmp_path: Path, topic: str, partitions: int, configs: dict[str, str]
) -> None:
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        asked = m.MetadataRequest.MetadataRequestTopic(name=topic)
        (created,) = wire.ask(m.MetadataRequest(topics=[asked], allow_auto_topic_creation=True)).topics

        assert (created.error_code, len(created.partitions)) == (0, partitions)
        assert {name: configs_of(wire, topic)[name] for name in configs} == configs


def test_who_creates_an_internal_topic_by_name_gets_what_he_says(tmp_path: Path) -> None:
    """As in Kafka, where CreateTopics keeps only the quorum's own topic to itself."""
    kind = m.CreateTopicsRequest
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        created = wire.ask(
            kind(topics=[kind.CreatableTopic(name, 2, 1) for name in ("__consumer_offsets", "__cluster_metadata")])
        )

        assert [(t.error_code, t.num_partitions) for t in created.topics] == [(0, 2), (42, -1)]


def configs_of(wire: Wire, topic: str) -> dict[str, str | None]:
    described = wire.ask(
        m.DescribeConfigsRequest(resources=[m.DescribeConfigsRequest.DescribeConfigsResource(2, topic, None)])
    )
    return {entry.name: entry.value for entry in described.results[0].configs}
