"""One round over all groups of a shard: offsets past their time get tombstones, and so do groups with nothing left.

A round is cut into steps of bounded work, so that a shard with a million offsets does not hold up its requests. Between
two steps anything may happen to the groups: each step looks at them afresh.
"""

from collections.abc import Callable
from typing import Final

from ottla.coordinator.group.committed import ByPartition, Committed
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.kind import Group
from ottla.coordinator.group.state import GroupSettings, GroupState
from ottla.coordinator.records import tombstone
from ottla.coordinator.shard import Now
from ottla.model.ids import Millis
from ottla.protocol.messages import OffsetCommitKey

STEP: Final = 1_000
"""Offsets and groups looked at in one step; a topic is not cut in two."""
PAUSE_MS: Final = 20
"""Between two steps: requests come first."""


class ExpiryRound:
    __slots__ = ("_bury", "_drafted", "_group_ids", "_state", "_topics")

    def __init__(self, state: GroupState, bury: Callable[[Group, Draft], None]) -> None:
        self._state = state
        self._bury = bury
        self._group_ids = list(state.groups)
        """Still to be looked at; the last one first, and it stays until it is done."""
        self._topics: list[str] | None = None
        """Those of the last group that are still to be looked at; None if it has not been begun."""
        self._drafted = 0
        """Tombstones for the last group that are in the draft and not replayed yet."""

    def step(self, draft: Draft, now: Now) -> bool:
        """True when the round is over."""
        left = STEP
        self._drafted = 0
        while self._group_ids and left > 0:
            group = self._state.groups.get(self._group_ids[-1])
            left -= 1
            if group is not None:
                left -= self._advance(group, draft, now)
            if group is None or not self._topics:
                if group is not None and self._is_left_with_nothing(group):
                    self._bury(group, draft)
                self._group_ids.pop()
                self._topics, self._drafted = None, 0
        return not self._group_ids

    def _advance(self, group: Group, draft: Draft, now: Now) -> int:
        """One topic of the group: how many offsets were looked at."""
        topics = self._state.offsets.by_group.get(group.group_id, {})
        since = group.offsets_expire_since()
        if since is None:
            self._topics = []
            return 0
        if self._topics is None:
            self._topics = list(topics)
        if not self._topics:
            return 0
        topic = self._topics.pop()
        partitions = topics.get(topic, {})
        if not group.is_subscribed_to(topic):
            self._expire(group.group_id, topic, partitions, since, draft, now)
        return len(partitions)

    def _expire(
        self, group_id: str, topic: str, partitions: ByPartition, since: Callable[[int], int], draft: Draft, now: Now
    ) -> None:
        for index, committed in partitions.items():
            if _is_expired(committed, since, now.wall, self._state.settings) and not self._state.offsets.is_unstable(
                group_id, topic, index
            ):
                draft.records.append(tombstone(OffsetCommitKey(group_id, topic, index)))
                self._drafted += 1

    def _is_left_with_nothing(self, group: Group) -> bool:
        offsets = self._state.offsets
        if not group.is_empty() or group.group_id in offsets.open_producers:
            return False
        kept = sum(len(partitions) for partitions in offsets.by_group.get(group.group_id, {}).values())
        return kept == self._drafted


def _is_expired(committed: Committed, since: Callable[[int], int], now: Millis, settings: GroupSettings) -> bool:
    if committed.expire_timestamp >= 0:
        return now >= committed.expire_timestamp
    return now - since(committed.commit_timestamp) >= settings.offsets_retention
