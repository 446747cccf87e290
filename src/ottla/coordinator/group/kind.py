"""What every kind of group has to be and to do, so that the shard and the offsets need not know which kinds there are.

A `Group` is the state of one group and answers for itself. A `Kind` decides for the groups of its kind in a shard. A
new kind is a package beside `classic` and `consumer`, and a row in the shard's table.
"""

from collections.abc import Callable, Mapping, Sized
from typing import Any, ClassVar, Protocol, TypeVar

from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.records import CoordinatorRecord
from ottla.coordinator.shard import Now
from ottla.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)


class Group(Protocol):
    """What offsets, listing and deleting need to know of a group of any kind."""

    group_id: str
    KIND: ClassVar[str]
    """As ListGroups names it."""

    @property
    def members(self) -> Sized: ...

    def is_empty(self) -> bool: ...

    def is_simple(self) -> bool:
        """Not a group, just a name for offsets: it gives way to a group of any kind that is replayed."""

    def state_name(self) -> str: ...

    @property
    def listed_protocol_type(self) -> str: ...

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, version: int
    ) -> "PartitionCheck | None":
        """Raises GroupError. What it returns is to be asked about every partition; None: all are fine."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_expire_since(self) -> "Callable[[int], int] | None":
        """From a commit's time to the time its retention counts from; None: no offset expires now."""

    def tombstones(self) -> list[CoordinatorRecord]: ...


PartitionCheck = Callable[[bytes, int], None]
"""Topic id and partition; raises GroupError."""


GroupT_contra = TypeVar("GroupT_contra", contravariant=True)
Replay = Callable[[Any, Any], None]
"""Key and value, None for a tombstone."""


class Kind(Protocol[GroupT_contra]):
    """Decides for the groups of one kind. What a group durably is changes by `replays` alone."""

    def replays(self) -> Mapping[int, Replay]:
        """By type of record."""

    def loaded(self, group: GroupT_contra, draft: Draft, now: Now) -> None:
        """Its records are replayed: arms what is kept in memory only."""

    def topics_changed(self, group: GroupT_contra) -> None: ...

    def resigned(self, group: GroupT_contra, draft: Draft) -> None:
        """The shard goes to another broker: answers whoever waits."""

    def forget(self, group: GroupT_contra) -> None:
        """Its tombstones are drafted: nothing is due for it any more."""

    def committed(self, group: GroupT_contra, member_id: str, now: Now) -> None:
        """A member has committed offsets."""

    # ---- the classic protocol's requests, which may name a group of any kind

    def join(
        self, request: JoinGroupRequest, group: GroupT_contra, caller: Caller, token: int, draft: Draft, now: Now
    ) -> None:
        """Answers by `token`, now or later."""

    def sync(self, request: SyncGroupRequest, group: GroupT_contra, token: int, draft: Draft, now: Now) -> None: ...

    def heartbeat(self, request: HeartbeatRequest, group: GroupT_contra, now: Now) -> HeartbeatResponse:
        """Raises GroupError."""

    def leave(self, request: LeaveGroupRequest, group: GroupT_contra, draft: Draft, now: Now) -> LeaveGroupResponse: ...
