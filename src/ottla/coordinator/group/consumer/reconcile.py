"""How a member of the consumer protocol walks from what it has to what it should have (KIP-848).

A partition that is to go is first asked back; only when the member no longer reports it may another have it. A member
that waits for others takes what is free and waits for the rest.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from ottla.coordinator.group.consumer.assignors import Partitions
from ottla.coordinator.group.consumer.member import ConsumerMember, MemberState, Owned
from ottla.coordinator.group.draft import GroupError
from ottla.model.errors import Errors


class OwnedTopic(Protocol):
    topic_id: bytes
    partitions: list[int]


class Goal(NamedTuple):
    target_epoch: int
    target: Partitions
    subscribed: Mapping[bytes, None]
    """Ids of the topics that the member reads now."""
    owner: Callable[[bytes, int], str | None]
    """Who holds a partition now."""


def reconcile(
    member: ConsumerMember, goal: Goal, owned: Iterable[OwnedTopic] | None, *, subscription_changed: bool
) -> ConsumerMember:
    """The member's next step. `owned` is what it reports to hold; None if this heartbeat did not say."""
    if not subscription_changed and member.is_reconciled_to(goal.target_epoch):
        return member
    if member.state is MemberState.STABLE and member.epoch == goal.target_epoch:
        return _drop_unsubscribed(member, goal, owned)
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_holds(member.revoking, owned):
        return _drop_unsubscribed(member, goal, owned) if subscription_changed else member
    if member.state is MemberState.UNKNOWN and (owned is None or any(topic.partitions for topic in owned)):
        raise GroupError(
            Errors.FENCED_MEMBER_EPOCH,
            "The member is in an unknown state. It must abandon all its partitions and rejoin.",
        )
    return _next(member, goal, owned)


def _still_holds(revoking: Owned, owned: Iterable[OwnedTopic] | None) -> bool:
    if owned is None:
        return True
    return any(partition in revoking.get(topic.topic_id, {}) for topic in owned for partition in topic.partitions)


def _drop_unsubscribed(member: ConsumerMember, goal: Goal, owned: Iterable[OwnedTopic] | None) -> ConsumerMember:
    """The subscription shrank and no new target is there yet: what is no longer read goes at once."""
    gone = {topic: partitions for topic, partitions in member.assigned.items() if topic not in goal.subscribed}
    if not gone:
        return member
    kept = {topic: partitions for topic, partitions in member.assigned.items() if topic in goal.subscribed}
    revoking = {topic: {**member.revoking.get(topic, {}), **gone.get(topic, {})} for topic in (*member.revoking, *gone)}
    if _still_holds(revoking, owned):
        return member._replace(
            state=MemberState.UNREVOKED_PARTITIONS, previous_epoch=member.epoch, assigned=kept, revoking=revoking
        )
    return member._replace(previous_epoch=member.epoch, assigned=kept)


def _next(member: ConsumerMember, goal: Goal, owned: Iterable[OwnedTopic] | None) -> ConsumerMember:
    kept: Owned = {}
    revoking: Owned = {}
    coming: dict[bytes, list[int]] = {}
    waits = False
    for topic in dict.fromkeys((*goal.target, *member.assigned)):
        target = dict.fromkeys(goal.target.get(topic, ()) if topic in goal.subscribed else ())
        has = member.assigned.get(topic, {})
        stays = {partition: epoch for partition, epoch in has.items() if partition in target}
        goes = {partition: epoch for partition, epoch in has.items() if partition not in target}
        free = [
            partition
            for partition in target
            if partition not in stays and goal.owner(topic, partition) in (None, member.member_id)
        ]
        waits = waits or len(free) + len(stays) < len(target)
        if stays:
            kept[topic] = stays
        if goes:
            revoking[topic] = goes
        if free:
            coming[topic] = free
    if revoking and _still_holds(revoking, owned):
        return member._replace(
            state=MemberState.UNREVOKED_PARTITIONS, previous_epoch=member.epoch, assigned=kept, revoking=revoking
        )
    for topic, free in coming.items():
        kept[topic] = {**kept.get(topic, {}), **dict.fromkeys(free, goal.target_epoch)}
    return member._replace(
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        epoch=goal.target_epoch,
        previous_epoch=member.epoch,
        assigned=kept,
        revoking={},
    )
