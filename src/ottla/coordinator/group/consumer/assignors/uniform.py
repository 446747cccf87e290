"""The uniform assignor: partitions spread evenly over the members, moving as few as possible.

If all members read the same topics their shares differ by one at most. If not, partitions are moved from fuller to
emptier subscribers of the same topic until no move helps, or for a bounded number of rounds.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from ottla.coordinator.group.consumer.assignors.spec import MemberSpec, Partitions

_ROUNDS: Final = 16
"""Each round about halves what is uneven; after so many the rest is not worth the time."""

Held = dict[bytes, list[int]]


def assign(members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Partitions]:
    if not members:
        return {}
    held, unassigned = _keep(members, partition_counts)
    first = next(iter(members.values()))
    if all(member.topics == first.topics for member in members.values()):
        _level(members, held, unassigned)
    else:
        _fill(members, held, unassigned)
        _balance(members, held)
    return {
        member_id: {topic: tuple(sorted(partitions)) for topic, partitions in mine.items() if partitions}
        for member_id, mine in held.items()
    }


def _keep(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> tuple[dict[str, Held], list[tuple[bytes, int]]]:
    """What everybody may keep of the last assignment, and the partitions nobody has."""
    wanted: dict[bytes, None] = {}
    taken: dict[bytes, dict[int, None]] = {}
    held: dict[str, Held] = {}
    for member_id, member in members.items():
        mine: Held = {}
        for topic in member.topics:
            wanted[topic] = None
            spoken_for = taken.setdefault(topic, {})
            kept = [
                partition
                for partition in member.target.get(topic, ())
                if partition < partition_counts[topic] and partition not in spoken_for
            ]
            if kept:
                mine[topic] = kept
                spoken_for.update(dict.fromkeys(kept))
        held[member_id] = mine
    unassigned = [
        (topic, partition)
        for topic in wanted
        for partition in range(partition_counts[topic])
        if partition not in taken[topic]
    ]
    return held, unassigned


# ---- everybody reads the same


def _level(members: Mapping[str, MemberSpec], held: dict[str, Held], unassigned: list[tuple[bytes, int]]) -> None:
    sizes = {member_id: _size(mine) for member_id, mine in held.items()}
    each, extra = divmod(sum(sizes.values()) + len(unassigned), len(members))
    # Those who have most already are the ones who may keep one more.
    by_size = sorted(held, key=lambda member_id: -sizes[member_id])
    quotas = {member_id: each + (place < extra) for place, member_id in enumerate(by_size)}
    for member_id, mine in held.items():
        for topic in list(mine):
            while sizes[member_id] > quotas[member_id] and mine[topic]:
                unassigned.append((topic, mine[topic].pop()))
                sizes[member_id] -= 1
    place = 0
    for member_id, mine in held.items():
        room = quotas[member_id] - sizes[member_id]
        for topic, partition in unassigned[place : place + room]:
            mine.setdefault(topic, []).append(partition)
        place += room


def _size(mine: Held) -> int:
    return sum(map(len, mine.values()))


# ---- everybody reads what they like


def _subscribers(members: Mapping[str, MemberSpec]) -> dict[bytes, list[str]]:
    found: dict[bytes, list[str]] = {}
    for member_id, member in members.items():
        for topic in member.topics:
            found.setdefault(topic, []).append(member_id)
    return found


def _fill(members: Mapping[str, MemberSpec], held: dict[str, Held], unassigned: list[tuple[bytes, int]]) -> None:
    """Topics with the fewest subscribers first: they have the least choice."""
    subscribers = _subscribers(members)
    sizes = {member_id: _size(mine) for member_id, mine in held.items()}
    by_topic: dict[bytes, list[int]] = {}
    for topic, partition in unassigned:
        by_topic.setdefault(topic, []).append(partition)
    for topic in sorted(by_topic, key=lambda topic: (len(subscribers[topic]), topic)):
        emptiest = [(sizes[member_id], place, member_id) for place, member_id in enumerate(subscribers[topic])]
        heapify(emptiest)
        for partition in by_topic[topic]:
            size, place, member_id = heappop(emptiest)
            held[member_id].setdefault(topic, []).append(partition)
            sizes[member_id] = size + 1
            heappush(emptiest, (size + 1, place, member_id))


def _balance(members: Mapping[str, MemberSpec], held: dict[str, Held]) -> None:
    subscribers = _subscribers(members)
    sizes = {member_id: _size(mine) for member_id, mine in held.items()}
    for _ in range(_ROUNDS):
        moved = False
        for topic, readers in subscribers.items():
            moved = _even_out(topic, readers, held, sizes) or moved
        if not moved:
            return


def _even_out(topic: bytes, readers: list[str], held: dict[str, Held], sizes: dict[str, int]) -> bool:
    """Moves partitions of one topic from its fullest to its emptiest reader while that makes the two more alike."""
    emptiest = [(sizes[member_id], place, member_id) for place, member_id in enumerate(readers)]
    heapify(emptiest)
    moved = False
    for giver in sorted(readers, key=lambda member_id: -sizes[member_id]):
        mine = held[giver].get(topic)
        while mine:
            size, place, taker = heappop(emptiest)
            if size != sizes[taker]:
                heappush(emptiest, (sizes[taker], place, taker))
                continue
            if sizes[giver] - size < 2:
                heappush(emptiest, (size, place, taker))
                break
            held[taker].setdefault(topic, []).append(mine.pop())
            sizes[giver] -= 1
            sizes[taker] += 1
            heappush(emptiest, (size + 1, place, taker))
            moved = True
    return moved
