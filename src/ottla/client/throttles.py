"""Limits on what a reassignment may copy, set as kafka-reassign-partitions sets them (KIP-73)."""

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.client.admin import BROKER, DELETE, SET, TOPIC, ConfigChange, alter_configs, describe_cluster
from ottla.client.cluster import Cluster
from ottla.client.partitions import Placed
from ottla.model.ids import TopicPartition

SIDES: Final = ("leader", "follower")


def limit(
    cluster: Cluster,
    now: Mapping[TopicPartition, Placed],
    targets: Mapping[TopicPartition, tuple[int, ...]],
    bytes_per_second: int,
) -> None:
    """Whoever holds a moving partition sends no faster than this to those that are to hold it; nor do they copy so."""
    for topic in sorted({place.topic for place in targets}):
        places = [place for place in targets if place.topic == topic]
        senders = [f"{p.partition}:{broker}" for p in places for broker in now[p].replicas]
        copiers = [f"{p.partition}:{b}" for p in places for b in targets[p] if b not in now[p].replicas]
        changes = [
            ConfigChange(f"{side}.replication.throttled.replicas", SET, ",".join(replicas))
            for side, replicas in zip(SIDES, (senders, copiers), strict=True)
        ]
        alter_configs(cluster, TOPIC, topic, changes)
    brokers = {broker for place in targets for broker in (*now[place].replicas, *targets[place])}
    for broker in sorted(brokers):
        changes = [ConfigChange(f"{side}.replication.throttled.rate", SET, str(bytes_per_second)) for side in SIDES]
        alter_configs(cluster, BROKER, str(broker), changes)


def lift(cluster: Cluster, topics: Sequence[str]) -> None:
    for topic in topics:
        changes = [ConfigChange(f"{side}.replication.throttled.replicas", DELETE) for side in SIDES]
        alter_configs(cluster, TOPIC, topic, changes)
    for broker in describe_cluster(cluster).brokers:
        changes = [ConfigChange(f"{side}.replication.throttled.rate", DELETE) for side in SIDES]
        alter_configs(cluster, BROKER, str(broker.broker_id), changes)
