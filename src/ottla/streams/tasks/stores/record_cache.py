"""The record cache of a table's store: of several updates of a key the last one goes out, when the task commits.

The store itself has every update at once; what waits is the record for the changelog and the change for the nodes
behind. Each goes out in the order of the last updates, with the time, headers and origin of the record that led to it
and with the value from before the first of them. A row that came and went in between is not told of at all.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ottla.streams.record import Change, Headers, Record
from ottla.streams.serdes import Serdes

if TYPE_CHECKING:
    from ottla.streams.tasks.current import TaskState
    from ottla.streams.topology.stores import ChangeLog, StoreBackend, StoreSpec

UNREAD: Final = b"not read yet"
"""Compared by identity: what the backend has, which nobody has asked for yet."""

_BEFORE: Final = 0
_CHANGE: Final = 8

Update = list[Any]
"""A row's last one: what was there before, the data, the timestamp and headers for the changelog, timestamp, headers,
origin and raw form of the record that led to it, and the change that is to be handed on. A list, for each update makes
one and fills in the last place later."""


class RecordCache:
    """`note` stands in for the store's changelog, `hand_on` for the nodes behind the one that writes the store.

    A store leaves in `found` what was there under a key before it writes; for a key that is in `updates` nobody looks.
    """

    __slots__ = (
        "_backend",
        "_forward",
        "_last",
        "_log",
        "_send_old",
        "_skip",
        "_state",
        "_value_of",
        "found",
        "updates",
    )

    def __init__(self, state: "TaskState", spec: "StoreSpec", backend: "StoreBackend", log: "ChangeLog | None") -> None:
        self.updates: dict[bytes, Update] = {}
        """By key of the changelog, in the order of the last updates."""
        self.found: bytes | None = None
        self._state = state
        self._backend = backend
        self._value_of = (spec.value_serde or Serdes.bytes).decode
        self._skip = 8 if spec.timestamped else 0
        self._log = log
        self._last: Update = []
        """Of the row that was written last."""
        self._forward: Callable[[Record], None] | None = None
        self._send_old = False

    def feed(self, forward: Callable[[Record], None], *, send_old: bool) -> Callable[[Record], None]:
        """From now on changes wait here. Nodes that share a store have the same children."""
        self._forward = forward
        self._send_old = send_old
        return self.hand_on

    def note(self, name: bytes, data: bytes | None, timestamp: int, headers: Headers) -> None:
        updates, state = self.updates, self._state
        moment = state.moment
        known = updates.pop(name, None)
        before = self.found if known is None else known[_BEFORE]
        self._last = [
            before, data, timestamp, headers, moment.timestamp, moment.headers, state.origin, state.raw, None,
        ]  # fmt: skip
        # A row that came and went leaves nothing: with sessions nearly all of them do, one for each record.
        if data is not None or before is not None or self._forward is None:
            updates[name] = self._last

    def hand_on(self, record: Record) -> None:
        """A change is handed on right after its row was written."""
        self._last[_CHANGE] = record

    def settle(self, names: Iterable[bytes]) -> None:
        """The backend is about to be written before a commit: what it has now is what was there before."""
        for name in names:
            update = self.updates.get(name)
            if update is not None and update[_BEFORE] is UNREAD:
                update[_BEFORE] = self._backend.get(name)

    def flush(self) -> None:
        updates, self.updates = self.updates, {}
        state, log, forward, send_old = self._state, self._log, self._forward, self._send_old
        for name, (found, data, at, logged, time, headers, origin, raw, change) in updates.items():
            before = None
            if data is None or send_old:
                before = self._backend.get(name) if found is UNREAD else found
                if data is None and before is None and forward is not None:
                    continue
            if log is not None:
                log(name, data, at, logged)
            if change is None or forward is None:
                continue
            state.origin, state.raw = origin, raw
            is_settled = not send_old and data is not None and change[3] is headers
            forward(change if is_settled else self._settled(change, before, time, headers))
        state.origin = state.raw = None

    def _settled(self, change: Record, before: bytes | None, time: int, headers: Headers) -> Record:
        new = change.value.new
        old = self._value_of(before[self._skip :]) if self._send_old and before is not None else None
        # A session's time is its end; another row that is deleted has the time of the record that did it.
        at = time if new is None and self._skip else change.timestamp
        return Record(change.key, Change(new, old), at, headers)
