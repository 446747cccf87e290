"""Incremental fetch sessions (KIP-227): what a client asked for, kept here so that it need not say it again.

A core: no clock, no dice. Session ids come in from outside. The slot rules are Kafka's: a new session takes a free
slot, else that of a session unused for the eviction time, else that of a smaller one that had its minimum time.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.model.errors import Errors
from ottla.model.ids import Millis

SESSIONLESS = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

PartitionKey = tuple[str | bytes, int]
"""Topic id (Fetch 13 and later) or topic name, and the partition."""


class SessionPartition:
    """One partition of a session: what the client asks, and what it was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition",
        "partition_max_bytes",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str | bytes,
        partition: int,
        fetch_offset: int,
        partition_max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.partition_max_bytes = partition_max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.partition

    def ask_again(self, asked: "SessionPartition") -> None:
        self.fetch_offset = asked.fetch_offset
        self.partition_max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset

    def is_news(self, high_watermark: int, log_start_offset: int) -> bool:
        return high_watermark != self.sent_high_watermark or log_start_offset != self.sent_log_start_offset

    def told(self, high_watermark: int, log_start_offset: int) -> bool:
        """Remembers what a response says; True if it is news."""
        changed = self.is_news(high_watermark, log_start_offset)
        self.sent_high_watermark = high_watermark
        self.sent_log_start_offset = log_start_offset
        return changed


@dataclass(slots=True)
class FetchSession:
    id: int
    uses_topic_ids: bool
    privileged: bool
    """Sessions of followers are not evicted for the sake of consumers."""
    partitions: "OrderedDict[PartitionKey, SessionPartition]"
    created: Millis
    last_used: Millis
    epoch: int = 1
    attention: dict[PartitionKey, None] | None = None
    """Partitions that may have news; None if each has to be looked at. A follower's session holds thousands, and few of
    them are written to between two fetches."""
    ended: bool = False

    def to_read(self) -> list[SessionPartition]:
        if self.attention is None:
            return list(self.partitions.values())
        return [self.partitions[key] for key in self.attention if key in self.partitions]


@dataclass(slots=True)
class FetchContext:
    """How one fetch is to be answered."""

    error: Errors = Errors.NONE
    session: FetchSession | None = None
    incremental: bool = False
    """Only partitions with news are in the response."""
    partitions: list[SessionPartition] = field(default_factory=list)

    def to_read_again(self) -> list[SessionPartition]:
        """When the fetch has waited: more may be worth a look by now."""
        if self.session is not None and self.session.attention is not None:
            return self.session.to_read()
        return self.partitions

    @property
    def session_id(self) -> int:
        return self.session.id if self.session is not None else SESSIONLESS


class FetchSessions:
    __slots__ = ("_eviction_ms", "_sessions", "_slots")

    def __init__(self, slots: int, eviction_ms: Millis) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self,
        session_id: int,
        epoch: int,
        asked: list[SessionPartition],
        forgotten: Iterable[PartitionKey],
        *,
        uses_topic_ids: bool,
        privileged: bool,
        new_session_id: int,
        now: Millis,
    ) -> FetchContext:
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            # A full fetch ends the session it names; epoch 0 asks for a new one.
            self._end(session_id)
            if epoch == FINAL_EPOCH:
                return FetchContext(partitions=asked)
            return self._full(asked, uses_topic_ids, privileged, new_session_id, now)
        return self._incremental(session_id, epoch, asked, forgotten, uses_topic_ids, now)

    def _full(
        self, asked: list[SessionPartition], uses_topic_ids: bool, privileged: bool, new_id: int, now: Millis
    ) -> FetchContext:
        if not asked or not self._make_room(len(asked), privileged, now):
            return FetchContext(partitions=asked)
        partitions = OrderedDict((partition.key, partition) for partition in asked)
        session = FetchSession(new_id, uses_topic_ids, privileged, partitions, now, now)
        self._sessions[new_id] = session
        return FetchContext(session=session, partitions=asked)

    def _incremental(
        self,
        session_id: int,
        epoch: int,
        asked: list[SessionPartition],
        forgotten: Iterable[PartitionKey],
        uses_topic_ids: bool,
        now: Millis,
    ) -> FetchContext:
        session = self._sessions.get(session_id)
        if session is None:
            return FetchContext(Errors.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext(Errors.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchContext(Errors.FETCH_SESSION_TOPIC_ID_ERROR)
        for partition in asked:
            if session.attention is not None:
                session.attention[partition.key] = None
            known = session.partitions.get(partition.key)
            if known is None:
                session.partitions[partition.key] = partition
            else:
                known.ask_again(partition)
        for key in forgotten:
            session.partitions.pop(key, None)
        session.last_used = now
        if not session.partitions:
            self._end(session_id)
            return FetchContext()
        session.epoch = 1 if epoch == 0x7FFFFFFF else epoch + 1
        self._sessions.move_to_end(session_id)
        return FetchContext(session=session, incremental=True, partitions=session.to_read())

    def end(self, session: FetchSession) -> None:
        """Its first answer was never given."""
        self._end(session.id)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.ended = True

    def _make_room(self, size: int, privileged: bool, now: Millis) -> bool:
        if len(self._sessions) < self._slots:
            return True
        for session in self._sessions.values():
            if now - session.last_used > self._eviction_ms or (privileged and not session.privileged):
                self._end(session.id)
                return True
        smallest = min(
            (s for s in self._sessions.values() if not s.privileged and now - s.created > self._eviction_ms),
            key=lambda s: len(s.partitions),
            default=None,
        )
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self._end(smallest.id)
        return True


def sent_with_data(session: FetchSession, keys: Iterable[PartitionKey]) -> None:
    """Partitions that just got data go to the back, so that the next fetch serves the others first."""
    for key in keys:
        session.partitions.move_to_end(key)
        if session.attention is not None:
            session.attention.pop(key, None)
            session.attention[key] = None
