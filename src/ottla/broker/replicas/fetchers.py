"""Copies the partitions this node follows, by one chain of fetches for each leader (`replication.fetch_chain`)."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, NamedTuple

from ottla.broker.partition import Partition
from ottla.broker.replicas.leader_news import LeaderNews
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.replicas.throttles import PAUSE_MS, ReplicationThrottle
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.model.errors import Errors
from ottla.model.ports import Clock
from ottla.net.peer import Address, Outcome, Peers, Unreachable
from ottla.protocol import messages
from ottla.replication.fetch_chain import FetchChain, Later
from ottla.replication.fetch_session import Question
from ottla.replication.follower import Ask, Do, PartitionFollower
from ottla.storage.answers import Deletion, Rejected
from ottla.storage.following import append_as_follower
from ottla.storage.fs import StorageError
from ottla.storage.log import Log
from ottla.storage.retention import delete_records_before

logger = logging.getLogger(__name__)

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
    leader_news: LeaderNews


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
            if before.is_empty:
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
    """Sends what its chain asks for, and has answers done to the logs."""

    __slots__ = ("_chain", "_closed", "_copier", "_host", "_lane", "_scheduled", "_timer", "_told", "key")

    def __init__(self, host: FetchHost, copier: "Copier", key: tuple[int, int], lane: str) -> None:
        self._host = host
        self._copier = copier
        self.key = key
        self._lane = lane
        self._chain: FetchChain[Partition] = FetchChain()
        self._scheduled = False
        self._timer: TimerHandle | None = None
        self._told = ""
        """Why it fails, as the log has it already: a leader that is gone is asked many times in a second."""
        self._closed = False

    @property
    def is_empty(self) -> bool:
        return not self._chain.partitions

    def add(self, partition: Partition) -> None:
        self._chain.add(partition)
        self._schedule()

    def remove(self, partition: Partition) -> None:
        self._chain.remove(partition)

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
        address, now = self._address(), self._host.clock.monotonic()
        if address is None:
            self._wake_at(now + self._longest_pause_ms)
            return
        turn = self._chain.turn(now, self._look)
        if turn.chain is not None:
            self._send(address, turn.chain, self._lane, self._answered)
        if turn.express is not None:
            self._send(address, turn.express, f"{self._lane}-express", self._express_answered)
        if turn.wake_at is not None:
            self._wake_at(turn.wake_at)

    @property
    def _longest_pause_ms(self) -> int:
        return self._host.configs.settings.get_int("replica.fetch.backoff.ms")

    def _address(self) -> Address | None:
        broker = self._host.replicas.brokers.registered.get(self.key[0])
        endpoint = None if broker is None else broker.listener(self._host.configs.settings.inter_broker_listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def _look(self, partition: Partition, now: int) -> Ask | Later | None:
        follower, found = partition.follower, partition.log
        if follower is None or found is None or follower.is_stopped:
            return None
        if follower.ready_at > now:
            return Later(follower.ready_at)
        if follower.is_behind and self._host.throttle.holds_back(partition, now):
            follower.ready_at = now + PAUSE_MS
            return Later(follower.ready_at)
        if found.config.flush_messages == 1 and found.recovery_point < found.log_end_offset:
            # To ask for more says that this much is safe: it comes back when it is.
            self._host.replicas.events.flush_wanted.tell(partition)
            return None
        has_room = partition.directory is None or not partition.directory.is_full
        return follower.ask(found, takes_records=has_room)

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
        if self._closed:
            return
        if isinstance(outcome, Unreachable):
            self._host.leader_news.lost(self.key[0])
            self._failed(str(outcome))
            return
        assert isinstance(outcome, messages.FetchResponse)
        self._host.leader_news.reached(self.key[0])
        if outcome.error_code:
            self._failed(Errors(outcome.error_code).name, outcome.error_code)
            return
        self._told = ""
        self._take(outcome, self._chain.answered(outcome.session_id))
        self._schedule()

    def _failed(self, why: str, error: int = 0) -> None:
        now = self._host.clock.monotonic()
        again_at = self._chain.failed(now, self._longest_pause_ms, error)
        if again_at > now and why != self._told:
            logger.info("fetching from broker %d failed: %s", self.key[0], why)
            self._told = why
        self._wake_at(again_at)

    def _express_answered(self, outcome: Outcome) -> None:
        if self._closed:
            return
        well = isinstance(outcome, messages.FetchResponse) and not outcome.error_code
        asked = self._chain.express_answered(well=well)
        if isinstance(outcome, messages.FetchResponse) and well:
            self._take(outcome, asked)
        self._schedule()

    def _take(self, response: "messages.FetchResponse", asked: Mapping[Partition, Ask]) -> None:
        by_id = self._host.replicas.by_id
        for topic in response.responses:
            known = by_id.get(topic.topic_id)
            if known is None:
                continue
            for data in topic.partitions:
                partition = known.partitions.get(data.partition_index)
                ask = None if partition is None else asked.get(partition)
                if partition is None or ask is None or partition not in self._chain.partitions:
                    continue
                if self._copier.take(partition, ask, data) == Do.ASK_RANGE:
                    self._ask_range(partition, ask)
                self._chain.taken(partition)

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
        if follower is None or partition not in self._chain.partitions:
            return
        if pause:
            self._copier.pause(follower)
        else:
            follower.ready_at = 0
        self.add(partition)

    # ---- waiting

    def _wake_at(self, at: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._host.loop.call_later(max(0, at - self._host.clock.monotonic()) / 1000, self._due)

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
                logger.debug("%s: the leader answers %d", found.topic_partition, data.error_code)
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
                logger.warning(
                    "%s begins again at %d, where its leader's log begins", found.topic_partition, step.offset
                )
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
            outcome = append_as_follower(found, records, follower.leader_epoch, self._host.clock.wall())
            if isinstance(outcome, Rejected):
                logger.error("%s: what its leader sent cannot be appended: %s", found.topic_partition, outcome.message)
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
            delete_records_before(found, start, follower.high_watermark)

    def _truncate(self, partition: Partition, follower: PartitionFollower, found: Log, offset: int) -> None:
        logger.info("%s is cut back from %d to %d", found.topic_partition, found.log_end_offset, offset)
        deletion = found.truncate_to(offset, self._host.clock.wall())
        if deletion is not None:
            self._later(partition, deletion)
        if follower.truncated(found):
            logger.warning(
                "%s: records below its high watermark were cut off: an unclean election", found.topic_partition
            )

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
