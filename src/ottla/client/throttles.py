"""Limits on what a reassignment may copy, set as kafka-reassign-partitions sets them (KIP-73)."""

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.client.admin import BROKER, DELETE, SET, TOPIC, ConfigChange, alter_configs, describe_cluster
from ottla.client.partitions import Placed
from ottla.client.routing import Routing
from ottla.client.steps import Steps, operation
from ottla.model.ids import TopicPartition

SIDES: Final = ("leader", "follower")


@operation
def limit(
    routing: Routing,
    now: Mapping[TopicPartition, Placed],
    targets: Mapping[TopicPartition, tuple[int, ...]],
    bytes_per_second: int,
) -> Steps[None]:
    """Whoever holds a moving partition sends no faster than this to those that are to hold it; nor do they copy so."""
    for topic in sorted({place.topic for place in targets}):
        places = [place for place in targets if place.topic == topic]
        senders = [f"{p.partition}:{broker}" for p in places for broker in now[p].replicas]
        copiers = [f"{p.partition}:{b}" for p in places for b in targets[p] if b not in now[p].replicas]
        changes = [
            ConfigChange(f"{side}.replication.throttled.replicas", SET, ",".join(replicas))
            for side, replicas in zip(SIDES, (senders, copiers), strict=True)
        ]
        yield from alter_configs.steps(routing, TOPIC, topic, changes)
    brokers = {broker for place in targets for broker in (*now[place].replicas, *targets[place])}
    for broker in sorted(brokers):
        changes = [ConfigChange(f"{side}.replication.throttled.rate", SET, str(bytes_per_second)) for side in SIDES]
        yield from alter_configs.steps(routing, BROKER, str(broker), changes)


@operation
def lift(routing: Routing, topics: Sequence[str]) -> Steps[None]:
    for topic in topics:
        changes = [ConfigChange(f"{side}.replication.throttled.replicas", DELETE) for side in SIDES]
        yield from alter_configs.steps(routing, TOPIC, topic, changes)
    for broker in (yield from describe_cluster.steps(routing)).brokers:
        changes = [ConfigChange(f"{side}.replication.throttled.rate", DELETE) for side in SIDES]
        yield from alter_configs.steps(routing, BROKER, str(broker.broker_id), changes)
