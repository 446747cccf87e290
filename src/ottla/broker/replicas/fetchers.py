"""Copies the partitions this node follows: one chain of fetches for each leader, with a session of its own.

A fetch may wait at the leader for half a second, and a partition that comes meanwhile would wait as long for its turn.
So it travels once by itself, on an express lane, until the next fetch of the chain takes it along: after an election
nothing is committed before the followers ask. Asked twice, an answer that comes second is ignored by its offset.
"""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, NamedTuple

from ottla.broker.partition import Partition
from ottla.broker.replicas.lost_leaders import LostLeaders
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.replicas.throttles import PAUSE_MS, ReplicationThrottle
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.model.errors import Errors
from ottla.model.ports import Clock
from ottla.net.peer import Address, Outcome, Peers, Unreachable
from ottla.protocol import messages
from ottla.replication.fetch_session import AskingSession, Question
from ottla.replication.follower import FIRST_PAUSE_MS, Ask, Do, PartitionFollower
from ottla.storage.fs import StorageError
from ottla.storage.log import Deletion, Log, Rejected

log = logging.getLogger(__name__)

_SESSION_ERRORS: Final = (
    Errors.FETCH_SESSION_ID_NOT_FOUND,
    Errors.INVALID_FETCH_SESSION_EPOCH,
    Errors.FETCH_SESSION_TOPIC_ID_ERROR,
)
_WITHOUT_SESSION: Final = -1
_EARLIEST: Final = -2
_LATEST: Final = -1
_LANES: Final = 8
"""Connections to a leader that fell silent are not waited for: who follows it again later takes the next lane."""
_PATIENCE: Final = 10
"""How many times the longest wait of a fetch a leader may take before the connection is given up."""
_SHORTEST_TIMEOUT_MS: Final = 5_000


class FetchHost(NamedTuple):
    """What fetchers need of the node."""

    loop: AbstractEventLoop
    clock: Clock
    replicas: Replicas
    waiting: WaitingRequests
    configs: Configs
    peers: Peers
    broker_epoch: Callable[[], int]
    throttle: ReplicationThrottle
    lost_leaders: LostLeaders


class Fetchers:
    """Hears `Events.followed`."""

    __slots__ = ("_at", "_by_leader", "_copier", "_host", "_lanes")

    def __init__(self, host: FetchHost) -> None:
        self._host = host
        self._copier = Copier(host)
        self._by_leader: dict[tuple[int, int], LeaderFetcher] = {}
        self._at: dict[Partition, LeaderFetcher] = {}
        self._lanes = count()

    def close(self) -> None:
        for fetcher in self._by_leader.values():
            fetcher.close()
        self._by_leader.clear()
        self._at.clear()

    def follow(self, partition: Partition) -> None:
        follower = partition.follower
        wanted = None
        if follower is not None and follower.leader_id >= 0:
            number = hash_of(partition) % max(1, self._host.configs.settings.get_int("num.replica.fetchers"))
            wanted = self._fetcher(follower.leader_id, number)
        before = self._at.get(partition)
        if before is not None and before is not wanted:
            del self._at[partition]
            before.remove(partition)
            if not before.partitions:
                before.close()
                del self._by_leader[before.key]
        if wanted is not None:
            self._at[partition] = wanted
            wanted.add(partition)

    def _fetcher(self, leader_id: int, number: int) -> "LeaderFetcher":
        key = (leader_id, number)
        found = self._by_leader.get(key)
        if found is None:
            lane = f"replica-{number}-{next(self._lanes) % _LANES}"
            found = self._by_leader[key] = LeaderFetcher(self._host, self._copier, key, lane)
        return found


def hash_of(partition: Partition) -> int:
    """The same in every run: the order of fetches must not hang on the interpreter's hash seed."""
    return int.from_bytes(partition.topic_id[-4:], "big") + partition.index


class LeaderFetcher:
    __slots__ = (
        "_closed",
        "_copier",
        "_delayed",
        "_dirty",
        "_express",
        "_fetching",
        "_fresh",
        "_host",
        "_lane",
        "_pause_ms",
        "_scheduled",
        "_session",
        "_timer",
        "key",
        "partitions",
    )

    def __init__(self, host: FetchHost, copier: "Copier", key: tuple[int, int], lane: str) -> None:
        self._host = host
        self._copier = copier
        self.key = key
        self._lane = lane
        self.partitions: dict[Partition, None] = {}
        self._session: AskingSession[Partition] = AskingSession()
        self._dirty: dict[Partition, None] = {}
        """Whose place in the session may have to change."""
        self._fresh: dict[Partition, None] = {}
        """Came while a fetch was on its way."""
        self._delayed: dict[Partition, None] = {}
        self._fetching = False
        self._express: dict[Partition, Ask] = {}
        """Asked for on the express lane; empty if nothing is under way there."""
        self._pause_ms = FIRST_PAUSE_MS
        self._scheduled = False
        self._timer: TimerHandle | None = None
        self._closed = False

    def add(self, partition: Partition) -> None:
        """Or something about it has changed: its epoch, or it may be asked for again."""
        self.partitions[partition] = None
        self._dirty[partition] = None
        if self._fetching:
            self._fresh[partition] = None
        self._schedule()

    def remove(self, partition: Partition) -> None:
        self.partitions.pop(partition, None)
        self._fresh.pop(partition, None)
        self._delayed.pop(partition, None)
        self._dirty[partition] = None

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- asking

    def _schedule(self) -> None:
        """After all the partitions of one image have come."""
        if not self._scheduled:
            self._scheduled = True
            self._host.loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        self._take_due()
        if not self._fetching:
            self._fetch()
        elif self._fresh and not self._express:
            self._fetch_fresh()

    def _address(self) -> Address | None:
        broker = self._host.replicas.brokers.registered.get(self.key[0])
        endpoint = None if broker is None else broker.listener(self._host.configs.settings.inter_broker_listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def _fetch(self) -> None:
        address = self._address()
        if address is None:
            self._wait(self._host.configs.settings.get_int("replica.fetch.backoff.ms"))
            return
        session = self._session
        looked_at = self.partitions if session.is_new else self._dirty
        asks, leave = self._sorted(looked_at)
        question = session.question(asks, leave)
        self._dirty.clear()
        self._fresh.clear()
        if not session.told:
            if question.forgotten:
                session.end()  # an empty session is none
        else:
            self._fetching = True
            self._send(address, question, self._lane, self._answered)
        self._wait_for_delayed()

    def _sorted(self, partitions: Iterable[Partition]) -> tuple[list[tuple[Partition, Ask]], list[Partition]]:
        """Those to ask for, and those to leave out now."""
        asks, leave = [], []
        now = self._host.clock.monotonic()
        for partition in partitions:
            follower, found = partition.follower, partition.log
            if follower is None or found is None or partition not in self.partitions or follower.is_stopped:
                leave.append(partition)
            elif follower.ready_at > now:
                self._delayed[partition] = None
                leave.append(partition)
            elif follower.is_behind and self._host.throttle.holds_back(partition, now):
                follower.ready_at = now + PAUSE_MS
                self._delayed[partition] = None
                leave.append(partition)
            elif found.config.flush_messages == 1 and found.recovery_point < found.log_end_offset:
                leave.append(partition)  # to ask for more says that this much is safe: it comes back when it is
                self._host.replicas.events.flush_wanted.tell(partition)
            else:
                has_room = partition.directory is None or not partition.directory.is_full
                asks.append((partition, follower.ask(found, takes_records=has_room)))
        return asks, leave

    def _take_due(self) -> None:
        now = self._host.clock.monotonic()
        for partition in list(self._delayed):
            if partition.follower is None or partition.follower.ready_at <= now:
                del self._delayed[partition]
                self._dirty[partition] = None
                if self._fetching:
                    self._fresh[partition] = None

    def _fetch_fresh(self) -> None:
        address = self._address()
        asks, _ = self._sorted(self._fresh)
        self._fresh.clear()
        if address is None or not asks:
            return
        self._express = dict(asks)
        question = Question(0, _WITHOUT_SESSION, asks, [])
        self._send(address, question, f"{self._lane}-express", self._express_answered)
        self._wait_for_delayed()

    def _send(
        self, address: Address, question: Question[Partition], lane: str, then: Callable[[Outcome], None]
    ) -> None:
        settings = self._host.configs.settings
        wait_ms = settings.get_int("replica.fetch.wait.max.ms")
        request = messages.FetchRequest(
            replica_state=messages.FetchRequest.ReplicaState(self._host.replicas.broker_id, self._host.broker_epoch()),
            max_wait_ms=wait_ms,
            min_bytes=settings.get_int("replica.fetch.min.bytes"),
            max_bytes=settings.get_int("replica.fetch.response.max.bytes"),
            session_id=question.session_id,
            session_epoch=question.epoch,
            topics=_topics(question.asks, settings.get_int("replica.fetch.max.bytes")),
            forgotten_topics_data=_forgotten(question.forgotten),
        )
        timeout_ms = min(settings.get_int("replica.socket.timeout.ms"), max(_SHORTEST_TIMEOUT_MS, wait_ms * _PATIENCE))
        self._host.peers.send(address, request, then, timeout_ms=timeout_ms, lane=lane)

    # ---- answers

    def _answered(self, outcome: Outcome) -> None:
        self._fetching = False
        if self._closed:
            return
        if isinstance(outcome, Unreachable):
            self._host.lost_leaders.lost(self.key[0], self._host.clock.monotonic())
            self._failed(str(outcome))
            return
        assert isinstance(outcome, messages.FetchResponse)
        self._host.lost_leaders.reached(self.key[0])
        if outcome.error_code:
            self._session.end()
            if outcome.error_code in _SESSION_ERRORS:
                self._schedule()
            else:
                self._failed(Errors(outcome.error_code).name)
            return
        self._pause_ms = FIRST_PAUSE_MS
        told = dict(self._session.told) if self._session.is_new else self._session.told
        self._session.answered(outcome.session_id)
        self._take(outcome, told)
        self._schedule()

    def _failed(self, why: str) -> None:
        log.info("fetching from broker %d failed: %s", self.key[0], why)
        self._session.end()
        self._wait(self._pause_ms)
        longest = self._host.configs.settings.get_int("replica.fetch.backoff.ms")
        self._pause_ms = min(self._pause_ms * 2, max(longest, 1))

    def _express_answered(self, outcome: Outcome) -> None:
        asked, self._express = self._express, {}
        if self._closed:
            return
        if isinstance(outcome, messages.FetchResponse) and not outcome.error_code:
            self._take(outcome, asked)
            if self._fetching:
                for partition in asked:
                    if partition in self.partitions and partition not in self._session.told:
                        self._fresh[partition] = None
        self._schedule()

    def _take(self, response: "messages.FetchResponse", asked: dict[Partition, Ask]) -> None:
        by_id = self._host.replicas.by_id
        for topic in response.responses:
            known = by_id.get(topic.topic_id)
            if known is None:
                continue
            for data in topic.partitions:
                partition = known.partitions.get(data.partition_index)
                ask = None if partition is None else asked.get(partition)
                if partition is None or ask is None or partition not in self.partitions:
                    continue
                if self._copier.take(partition, ask, data) == Do.ASK_RANGE:
                    self._ask_range(partition, ask)
                self._dirty[partition] = None

    # ---- out of range

    def _ask_range(self, partition: Partition, ask: Ask) -> None:
        """The leader keeps nothing at our log's end: where it begins and ends decides what to do."""
        follower, address = partition.follower, self._address()
        if follower is None or address is None:
            return
        timeout_ms = _SHORTEST_TIMEOUT_MS
        follower.ready_at = self._host.clock.monotonic() + timeout_ms  # or until the answers are here

        def ended(outcome: Outcome) -> None:
            end = _offset(outcome)
            if end is None:
                self._resume(partition, pause=True)
            else:
                question = _list_offsets(self._host.replicas.broker_id, partition, ask, _EARLIEST)
                self._host.peers.send(
                    address, question, lambda found: begun(found, end), timeout_ms=timeout_ms, lane=lane
                )

        def begun(outcome: Outcome, end: int) -> None:
            start = _offset(outcome)
            if start is not None:
                self._copier.take_range(partition, ask, start, end)
            self._resume(partition, pause=start is None)

        lane = f"{self._lane}-range"
        question = _list_offsets(self._host.replicas.broker_id, partition, ask, _LATEST)
        self._host.peers.send(address, question, ended, timeout_ms=timeout_ms, lane=lane)

    def _resume(self, partition: Partition, *, pause: bool) -> None:
        follower = partition.follower
        if follower is None or partition not in self.partitions:
            return
        if pause:
            self._copier.pause(follower)
        else:
            follower.ready_at = 0
        self.add(partition)

    # ---- waiting

    def _wait(self, pause_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._host.loop.call_later(pause_ms / 1000, self._due)

    def _wait_for_delayed(self) -> None:
        due = [each.follower.ready_at for each in self._delayed if each.follower is not None]
        if due:
            self._wait(max(0, min(due) - self._host.clock.monotonic()))

    def _due(self) -> None:
        self._timer = None
        self._schedule()


class Copier:
    """Does to the log of a follower what its leader's answers ask for."""

    __slots__ = ("_host",)

    def __init__(self, host: FetchHost) -> None:
        self._host = host

    def take(self, partition: Partition, ask: Ask, data: "messages.FetchResponse.PartitionData") -> Do:
        follower, found = partition.follower, partition.log
        if follower is None or found is None:
            return Do.NOTHING
        diverging = data.diverging_epoch
        step = follower.answered(
            ask,
            found,
            self._host.clock.monotonic(),
            self._longest_pause_ms,
            error=data.error_code,
            diverging_epoch=diverging.epoch,
            diverging_end=diverging.end_offset,
        )
        try:
            if step.do == Do.APPEND:
                self._append(partition, follower, found, data)
            elif step.do == Do.TRUNCATE:
                self._truncate(partition, follower, found, step.offset)
            elif data.error_code:
                log.debug("%s: the leader answers %d", found.topic_partition, data.error_code)
        except StorageError as error:
            self._storage_failed(partition, follower, error)
        return step.do

    def take_range(self, partition: Partition, ask: Ask, leader_start: int, leader_end: int) -> None:
        follower, found = partition.follower, partition.log
        if follower is None or found is None:
            return
        step = follower.range_known(ask, leader_start, leader_end, found)
        try:
            if step.do == Do.TRUNCATE:
                self._truncate(partition, follower, found, step.offset)
            elif step.do == Do.RESTART:
                log.warning("%s begins again at %d, where its leader's log begins", found.topic_partition, step.offset)
                self._later(partition, found.truncate_fully_and_start_at(step.offset, self._host.clock.wall()))
                follower.restarted(found)
        except StorageError as error:
            self._storage_failed(partition, follower, error)

    def pause(self, follower: PartitionFollower) -> None:
        follower.pause(self._host.clock.monotonic(), self._longest_pause_ms)

    @property
    def _longest_pause_ms(self) -> int:
        return self._host.configs.settings.get_int("replica.fetch.backoff.ms")

    def _append(
        self,
        partition: Partition,
        follower: PartitionFollower,
        found: Log,
        data: "messages.FetchResponse.PartitionData",
    ) -> None:
        records = data.records
        if records:
            outcome = found.append_as_follower(records, follower.leader_epoch, self._host.clock.wall())
            if isinstance(outcome, Rejected):
                log.error("%s: what its leader sent cannot be appended: %s", found.topic_partition, outcome.message)
                self.pause(follower)
                return
            partition.counts.replication_bytes_in += len(records)
            if found.config.flush_messages <= found.log_end_offset - found.recovery_point:
                self._host.replicas.events.flush_wanted.tell(partition)
            self._host.throttle.record(partition, len(records), self._host.clock.monotonic())
        if follower.caught(data.high_watermark, found):
            found.forget_replicated_ends(follower.high_watermark)
            if self._host.waiting.fetches.waiting:
                self._host.waiting.records_visible(partition, len(records) if records else 1)
        start = min(data.log_start_offset, follower.high_watermark)
        if start > found.log_start_offset:
            found.delete_records_before(start, follower.high_watermark)

    def _truncate(self, partition: Partition, follower: PartitionFollower, found: Log, offset: int) -> None:
        log.info("%s is cut back from %d to %d", found.topic_partition, found.log_end_offset, offset)
        deletion = found.truncate_to(offset, self._host.clock.wall())
        if deletion is not None:
            self._later(partition, deletion)
        if follower.truncated(found):
            log.warning("%s: records below its high watermark were cut off: an unclean election", found.topic_partition)

    def _later(self, partition: Partition, deletion: Deletion) -> None:
        assert partition.directory is not None
        self._host.replicas.deletions.append((partition.directory, deletion))

    def _storage_failed(self, partition: Partition, follower: PartitionFollower, error: StorageError) -> None:
        self.pause(follower)  # a disk that is only full is tried again
        assert partition.directory is not None
        self._host.replicas.storage_failed(partition.directory, error)


def _topics(asks: list[tuple[Partition, Ask]], max_bytes: int) -> "list[messages.FetchRequest.FetchTopic]":
    topics: dict[bytes, list[messages.FetchRequest.FetchPartition]] = {}
    for partition, ask in asks:
        topics.setdefault(partition.topic_id, []).append(
            messages.FetchRequest.FetchPartition(
                partition.index,
                ask.leader_epoch,
                ask.fetch_offset,
                ask.last_fetched_epoch,
                ask.log_start_offset,
                max_bytes if ask.takes_records else 0,
            )
        )
    return [messages.FetchRequest.FetchTopic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()]


def _forgotten(partitions: list[Partition]) -> "list[messages.FetchRequest.ForgottenTopic]":
    topics: dict[bytes, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic_id, []).append(partition.index)
    return [
        messages.FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()
    ]


def _list_offsets(broker_id: int, partition: Partition, ask: Ask, timestamp: int) -> "messages.ListOffsetsRequest":
    kind = messages.ListOffsetsRequest
    asked = kind.ListOffsetsPartition(partition.index, ask.leader_epoch, timestamp)
    return kind(replica_id=broker_id, topics=[kind.ListOffsetsTopic(partition.topic, [asked])])


def _offset(outcome: Outcome) -> int | None:
    if not isinstance(outcome, messages.ListOffsetsResponse):
        return None
    found = outcome.topics[0].partitions[0]
    return None if found.error_code or found.offset < 0 else found.offset
