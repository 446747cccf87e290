"""What all kinds of groups share: settings, deadlines, and the groups of one shard."""

from collections.abc import Callable, Hashable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple, TypeVar

from ottla.coordinator.group.committed import Offsets
from ottla.coordinator.group.draft import Action, GroupError
from ottla.coordinator.group.kind import Group
from ottla.coordinator.undo import Undo
from ottla.metadata.image import EMPTY, GROUP_RESOURCE, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis

NO_MEMBER: Final = ""
REFUSED_PAUSE_MS: Final = 1_000
"""Until what was due and could not be written is tried again."""
CONSUMER_TYPE: Final = "consumer"
"""The protocol type whose metadata we may read; every other type's is opaque."""


class GroupSettings(NamedTuple):
    """The broker's settings for groups; a group of the consumer protocol may override three of them."""

    offset_metadata_max_bytes: int = 4096
    offsets_retention: Millis = Millis(10_080 * 60_000)
    offsets_retention_check: Millis = Millis(600_000)
    min_session_timeout: Millis = Millis(6_000)
    max_session_timeout: Millis = Millis(1_800_000)
    initial_rebalance_delay: Millis = Millis(3_000)
    classic_max_size: int = 0x7FFFFFFF
    consumer_max_size: int = 0x7FFFFFFF
    consumer_session_timeout: Millis = Millis(45_000)
    consumer_heartbeat_interval: Millis = Millis(5_000)
    consumer_assignment_interval: Millis = Millis(1_000)
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "bidirectional"
    regex_refresh: Millis = Millis(600_000)
    max_groups: int = 10_000
    """Of all shards together."""

    @property
    def upgrade_enabled(self) -> bool:
        return self.migration_policy.lower() in ("upgrade", "bidirectional")

    @property
    def downgrade_enabled(self) -> bool:
        return self.migration_policy.lower() in ("downgrade", "bidirectional")


class Deadlines:
    """What is to be done when, each under a key; setting a key again moves it. Soft state: made anew on load.

    A heartbeat moves a deadline back far more often than one is reached, so the heap keeps one early entry per key and
    looks again when that comes up.
    """

    __slots__ = ("_entries", "_heap", "_order", "_undo")

    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._entries: dict[Hashable, tuple[Millis, Millis, Action]] = {}
        self._heap: list[tuple[Millis, int, Hashable]] = []
        self._order = count()

    def set(self, key: Hashable, at: int, action: Action) -> None:
        known = self._entries.get(key)
        self._undo.step(lambda: self._restore(key, known))
        if known is not None and known[1] <= at:
            self._entries[key] = (Millis(at), known[1], action)
        else:
            self._push(key, Millis(at), action)

    def _restore(self, key: Hashable, entry: tuple[Millis, Millis, Action] | None) -> None:
        if entry is None:
            self._entries.pop(key, None)
        else:
            self._push(key, entry[0], entry[2])

    def _push(self, key: Hashable, at: Millis, action: Action) -> None:
        self._entries[key] = (at, at, action)
        heappush(self._heap, (at, next(self._order), key))

    def cancel(self, key: Hashable) -> None:
        known = self._entries.pop(key, None)
        if known is not None:
            self._undo.step(lambda: self._restore(key, known))

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def at(self, key: Hashable) -> Millis | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def pop_due(self, now: Millis) -> Action | None:
        """Time cannot be taken back: if the log refuses what is decided now, the deadline comes once more, later."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            looked_for, _, key = heappop(heap)
            entry = self._entries.get(key)
            if entry is None or entry[1] != looked_for:
                continue
            at, _, action = entry
            if at > now:
                self._push(key, at, action)
                continue
            del self._entries[key]
            self._undo.step(partial(self._push, key, Millis(now + REFUSED_PAUSE_MS), action))
            return action
        return None

    def next(self) -> Millis | None:
        heap = self._heap
        while heap:
            at, _, key = heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry[1] == at:
                return at
            heappop(heap)
        return None


GroupT = TypeVar("GroupT", bound=Group)


class GroupState:
    """The groups of one shard."""

    __slots__ = (
        "_groups_here",
        "_tokens",
        "deadlines",
        "groups",
        "image",
        "loading",
        "new_id",
        "offsets",
        "settings",
        "topics_version",
        "undo",
    )

    def __init__(
        self,
        settings: GroupSettings,
        offsets: Offsets,
        new_id: Callable[[], str],
        groups_here: Callable[[], int] | None = None,
    ) -> None:
        self.settings = settings
        self._groups_here = groups_here
        self.offsets = offsets
        self.new_id = new_id
        """A fresh random id, printed."""
        self.groups: dict[str, Group] = {}
        self.undo = Undo()
        self.deadlines = Deadlines(self.undo)
        self.image: MetadataImage = EMPTY
        self.topics_version = -1
        """Offset of the image in which topics last changed: patterns resolved before it may match others now."""
        self.loading = True
        self._tokens = count(1)

    def token(self) -> int:
        """A name for a reply that is to come."""
        return next(self._tokens)

    def count(self) -> int:
        return len(self.groups) if self._groups_here is None else self._groups_here()

    def is_crowded(self) -> bool:
        return self.count() >= self.settings.max_groups * 9 // 10

    def check_room(self) -> None:
        """Before a group is made. Raises GroupError: a group that holds offsets never gives way to a new one."""
        limit = self.settings.max_groups
        if self.count() >= limit:
            raise GroupError(
                Errors.GROUP_MAX_SIZE_REACHED,
                f"The node keeps {limit} groups already, the most ottla.groups.max allows.",
            )

    def find(self, kind: type[GroupT], group_id: str) -> GroupT | None:
        """The group, if it is of that kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, kind) else None

    def found(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def group_setting(self, group_id: str, name: str, default: Millis) -> Millis:
        """A group's own value, from its GROUP config resource."""
        own = self.image.configs.get((GROUP_RESOURCE, group_id))
        return Millis(int(own[name])) if own and name in own else default
