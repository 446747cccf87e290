"""The range assignor: of each topic, every subscriber gets one run of neighbouring partitions.

Partition n of one topic and partition n of another go to the same member when the topics are alike: that is what joins
need. Static members come first, by instance id, so that a restart changes nothing.
"""

from collections.abc import Mapping

from ottla.coordinator.group.consumer.assignors.spec import MemberSpec, Partitions


def assign(members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Partitions]:
    order = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
    subscribers: dict[bytes, int] = {}
    for member_id in order:
        for topic in members[member_id].topics:
            subscribers[topic] = subscribers.get(topic, 0) + 1
    seen: dict[bytes, int] = {}
    assigned: dict[str, Partitions] = {}
    for member_id in order:
        mine: Partitions = {}
        for topic in members[member_id].topics:
            place = seen.get(topic, 0)
            seen[topic] = place + 1
            start, end = _range(partition_counts[topic], subscribers[topic], place)
            if start < end:
                mine[topic] = tuple(range(start, end))
        assigned[member_id] = mine
    return assigned


def _rank(member_id: str, member: MemberSpec) -> tuple[bool, str]:
    return (False, member.instance_id) if member.instance_id is not None else (True, member_id)


def _range(partitions: int, subscribers: int, place: int) -> tuple[int, int]:
    """The first `extra` subscribers get one partition more."""
    each, extra = divmod(partitions, subscribers)
    start = place * each + min(place, extra)
    return start, start + each + (place < extra)
