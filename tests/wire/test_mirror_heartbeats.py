"""Each target of a mirror has its own topic of heartbeats, made as it is to be."""

from ottla.client.addresses import parse_bootstrap
from ottla.client.admin import TOPIC, describe_configs
from ottla.client.blocking.cluster import Cluster as Client
from ottla.connect.spi import parse
from ottla.mirror.config import HeartbeatMirrorConfig
from ottla.mirror.heartbeat_connector import MirrorHeartbeat
from ottla.testing import Cluster


def _cleanup(kafka: Cluster) -> str | None:
    with Client(parse_bootstrap(kafka.bootstrap_servers)) as client:
        found = describe_configs(client, TOPIC, ["heartbeats"])["heartbeats"]
    assert not isinstance(found, Exception), found
    return next(each.value for each in found if each.name == "cleanup.policy")


def test_flows_of_one_process_make_it_on_both_of_their_targets() -> None:
    with Cluster() as one, Cluster() as other:
        for source, target in ((one, other), (other, one)):
            given = {
                "source.cluster.alias": "source",
                "source.cluster.bootstrap.servers": source.bootstrap_servers,
                "target.cluster.bootstrap.servers": target.bootstrap_servers,
            }
            heartbeat = MirrorHeartbeat(parse(HeartbeatMirrorConfig, given), "MirrorHeartbeatConnector")
            heartbeat.partitions()
        assert (_cleanup(one), _cleanup(other)) == ("compact", "compact")
