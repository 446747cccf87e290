"""How far consumers may read in partitions of which this broker has no replica in sync: their leaders are asked.

A group's coordinator knows what the group has committed; the lag needs the leaders' side as well. Whoever does not
answer in time is left out of this scrape.
"""

import asyncio
from typing import Final

from ottla.broker.services import Services
from ottla.metrics.text import SLICE
from ottla.model.ids import NO_LEADER
from ottla.net.peer import Address, Peers, Unreachable
from ottla.node.monitoring import groups
from ottla.protocol import messages

_LANE: Final = "metrics"
_PATIENCE_MS: Final = 1_000
_LATEST: Final = -1
_CLIENT: Final = -1


async def ends_elsewhere(services: Services, peers: Peers, most: int) -> dict[tuple[str, int], int]:
    wanted = await _wanted(services, most)
    asked = [
        _ask(peers, address, spots)
        for leader, spots in wanted.items()
        if (address := _address(services, leader)) is not None
    ]
    ends: dict[tuple[str, int], int] = {}
    for answer in await asyncio.gather(*asked):
        ends.update(answer)
    return ends


def end_here(services: Services, topic: str, index: int) -> int | None:
    """None if only others know. A follower in sync has all that is committed, and hears of that a moment later."""
    partition = services.replicas.find(topic, index)
    if partition is None or partition.log is None:
        return None
    if partition.leader is not None:
        return partition.leader.high_watermark
    placed = services.control_plane.image.partition(topic, index)
    return partition.log.log_end_offset if placed is not None and services.broker_id in placed.isr else None


async def _wanted(services: Services, most: int) -> dict[int, list[groups.Spot]]:
    """By leader. Others have the loop now and then: groups may have committed very many offsets."""
    found: dict[groups.Spot, int] = {}
    looked_at = 0
    for shard in groups.shards(services):
        committed = shard.state.offsets.by_group
        for group_id in list(committed):
            for spot in [(topic, index) for topic, indexes in committed.get(group_id, {}).items() for index in indexes]:
                looked_at += 1
                if looked_at % SLICE == 0:
                    await asyncio.sleep(0)
                placed = services.control_plane.image.partition(*spot)
                if placed is not None and placed.leader != NO_LEADER and end_here(services, *spot) is None:
                    found[spot] = placed.leader
            if len(found) >= most:
                break
    by_leader: dict[int, list[groups.Spot]] = {}
    for spot, leader in found.items():
        by_leader.setdefault(leader, []).append(spot)
    return by_leader


def _address(services: Services, broker_id: int) -> Address | None:
    broker = services.control_plane.image.brokers.get(broker_id)
    endpoint = None if broker is None else broker.listener(services.configs.settings.inter_broker_listener)
    return None if endpoint is None else Address(endpoint.host, endpoint.port)


async def _ask(peers: Peers, leader: Address, spots: list[groups.Spot]) -> dict[tuple[str, int], int]:
    kind = messages.ListOffsetsRequest
    topics: dict[str, list[messages.ListOffsetsRequest.ListOffsetsPartition]] = {}
    for topic, index in spots:
        topics.setdefault(topic, []).append(kind.ListOffsetsPartition(partition_index=index, timestamp=_LATEST))
    request = kind(
        replica_id=_CLIENT, topics=[kind.ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()]
    )
    try:
        answer = await peers.ask(leader, request, timeout_ms=_PATIENCE_MS, lane=_LANE)
    except Unreachable:
        return {}
    assert isinstance(answer, messages.ListOffsetsResponse)
    return {
        (topic.name, found.partition_index): found.offset
        for topic in answer.topics
        for found in topic.partitions
        if not found.error_code
    }
