"""The transactional ids of one partition of `__transaction_state`.

Every change is one record that holds a transactional id's whole state, so replaying the log is taking the last one.
PREPARE_COMMIT and PREPARE_ABORT are the decision: once such a record is committed the markers are written, again and
again until every partition has acknowledged, over crashes and changes of coordinator. What is kept in memory only (who
has acknowledged, when a transaction times out, which epoch a producer held before) is armed afresh on load.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from ottla.coordinator.records import CoordinatorRecord, Packed, tombstone
from ottla.coordinator.shard import Decision, Now, Respond
from ottla.coordinator.transaction.machine import NONE, Producer, Step, Transaction, newborn
from ottla.coordinator.transaction.states import BY_TITLE, TransactionState
from ottla.coordinator.undo import Undo
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis, TopicPartition
from ottla.protocol.messages import TransactionLogKey, TransactionLogValue

NO_TIMEOUT: Final = 0x7FFFFFFF
"""Of a transaction that an outside coordinator ends (KIP-939)."""
FEATURE: Final = "transaction.version"
FLEXIBLE_SINCE: Final = 1
"""transaction.version from which on the state is written with tagged fields."""


class TransactionSettings(NamedTuple):
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    timeout_check_ms: int = 10_000
    expiration_check_ms: int = 3_600_000
    two_phase_commit: bool = False
    max_open: int = 10_000
    """Transactions open at one time, and transactional ids remembered: of all shards together."""
    max_ids: int = 100_000
    feature_level: int = 0
    """transaction.version, as the cluster has it finalized: chooses how the coordinator itself aborts. The shard takes
    it from the metadata."""


class InitProducerId(NamedTuple):
    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    """What the producer believes to be (KIP-360); None from one that starts."""
    two_phase_commit: bool = False
    keep_prepared: bool = False


class InitReply(NamedTuple):
    error: Errors
    producer_id: int = NONE
    epoch: int = NONE


class EndReply(NamedTuple):
    error: Errors
    producer_id: int = NONE
    epoch: int = NONE


class WantsProducerId(NamedTuple):
    """In place of a reply: the command needs a fresh producer id and is to be given again with one."""


WANTS_PRODUCER_ID: Final = WantsProducerId()


class WriteMarkers(NamedTuple):
    """Effect: a control batch for each partition, until all of them have acknowledged."""

    transactional_id: str
    producer: Producer
    committed: bool
    partitions: tuple[TopicPartition, ...]
    coordinator_epoch: int
    transaction_version: int


class TimedOut(NamedTuple):
    """Effect: `time_out` this transaction with a fresh producer id; its own has no epoch left to fence it with."""

    transactional_id: str
    producer: Producer


class ListFilter(NamedTuple):
    """What ListTransactions asks for; an empty part asks for everything."""

    states: tuple[str, ...] = ()
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = NONE
    matches: Callable[[str], bool] | None = None


class Listed(NamedTuple):
    transactional_id: str
    producer_id: int
    state: TransactionState


class Load(NamedTuple):
    """How much a node keeps: what the limits are for."""

    transactional_ids: int
    open_transactions: int


EXPIRED_AT_ONCE: Final = 1_000
PAUSE_MS: Final = 20
"""Before more of the expired are dealt with: requests come first."""

ReplyT = TypeVar("ReplyT")
_UNCHANGED: Final = Decision(None)


class TransactionShard:
    __slots__ = (
        "_bumps",
        "_deadlines",
        "_earliest",
        "_looked",
        "_looked_for_expired",
        "_node_load",
        "_unacknowledged",
        "coordinator_epoch",
        "open_transactions",
        "settings",
        "transactions",
        "undo",
    )

    def __init__(
        self, coordinator_epoch: int, settings: TransactionSettings, node_load: Callable[[], Load] | None = None
    ) -> None:
        """`node_load` is that of all shards that share the limits."""
        self.coordinator_epoch = coordinator_epoch
        self.settings = settings
        self._node_load = node_load or self.load
        self.transactions: dict[str, Transaction] = {}
        self.open_transactions = 0
        """Those among them that have begun and miss a marker."""
        self._unacknowledged: dict[str, dict[TopicPartition, None]] = {}
        """Partitions that still owe an acknowledgement of their marker."""
        self._deadlines: dict[str, Millis] = {}
        """When open transactions time out, by the monotonic clock: a wall clock that jumps aborts nothing."""
        self._earliest: Millis | None = None
        """No deadline is nearer than this."""
        self._bumps: dict[str, tuple[Producer, int]] = {}
        """Producer and the epoch it held before. Believed only while it is the current one."""
        self.undo = Undo()
        self._looked = self._looked_for_expired = Millis(0)

    # ---- commands

    def init_producer_id(
        self, command: InitProducerId, now: Now, fresh_id: int = NONE
    ) -> Decision[InitReply | WantsProducerId]:
        refused = self._init_refusal(command)
        if refused is not None:
            return Decision(InitReply(refused))
        name = command.transactional_id
        timeout_ms = NO_TIMEOUT if command.two_phase_commit else command.timeout_ms
        known = self.transactions.get(name)
        forgotten: tuple[CoordinatorRecord, ...] = ()
        if known is None:
            if fresh_id == NONE:
                return Decision(WANTS_PRODUCER_ID)
            known = newborn(fresh_id, timeout_ms, now.wall)
            forgotten = self._making_room()
        step = known.init(
            command.expected, self._last_epoch(name, known), timeout_ms, fresh_id, self.settings.feature_level, now.wall
        )
        if step.wants_producer_id:
            return Decision(WANTS_PRODUCER_ID)
        if step.next is None or step.error:
            return self._change(name, step, InitReply(step.error))
        decision = self._change(name, step, InitReply(Errors.NONE, *step.next.producer))
        return Decision(decision.reply, forgotten + decision.records, decision.effects) if forgotten else decision

    def _making_room(self) -> tuple[CoordinatorRecord, ...]:
        """At the limit those idle for longest are forgotten, a hundredth at a time: looking for them takes a while."""
        limit = self.settings.max_ids
        if self._node_load().transactional_ids < limit:
            return ()
        idle = ((txn.updated, name) for name, txn in self.transactions.items() if txn.state.is_idle)
        return tuple(tombstone(TransactionLogKey(name)) for _, name in nsmallest(max(1, limit // 100), idle))

    def _init_refusal(self, command: InitProducerId) -> Errors | None:
        if not command.transactional_id:
            return Errors.INVALID_REQUEST
        if command.two_phase_commit and not self.settings.two_phase_commit:
            return Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if command.keep_prepared:
            return Errors.UNSUPPORTED_VERSION
        if not command.two_phase_commit and not 0 < command.timeout_ms <= self.settings.max_timeout_ms:
            return Errors.INVALID_TRANSACTION_TIMEOUT
        return None

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        client_version: int,
        now: Now,
    ) -> Decision[Errors]:
        if not transactional_id:
            return Decision(Errors.INVALID_REQUEST)
        known = self.transactions.get(transactional_id)
        if known is None:
            return Decision(Errors.INVALID_PRODUCER_ID_MAPPING)
        step = known.add(producer, partitions, client_version, now.wall)
        if step.next is None:
            return Decision(step.error)
        if known.state is not TransactionState.ONGOING:
            if self._node_load().open_transactions >= self.settings.max_open:
                return Decision(Errors.CONCURRENT_TRANSACTIONS)  # the one error on which every client just waits
            self._arm(transactional_id, now.monotonic + known.timeout_ms, known.timeout_ms)
        return Decision(step.error, (self._record(transactional_id, step.next),))

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Errors]:
        if not transactional_id:
            return dict.fromkeys(partitions, Errors.INVALID_REQUEST)
        known = self.transactions.get(transactional_id)
        if known is None:
            return dict.fromkeys(partitions, Errors.INVALID_PRODUCER_ID_MAPPING)
        return known.verify(producer, partitions)

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        committed: bool,
        client_version: int,
        now: Now,
        fresh_id: int = NONE,
    ) -> Decision[EndReply | WantsProducerId]:
        if not transactional_id:
            return Decision(EndReply(Errors.INVALID_REQUEST))
        known = self.transactions.get(transactional_id)
        if known is None:
            return Decision(EndReply(Errors.INVALID_PRODUCER_ID_MAPPING))
        if client_version < 2:
            step = known.end_v1(producer, committed, now.wall)
            return self._change(transactional_id, step, EndReply(step.error))
        step = known.end_v2(producer, committed, fresh_id, now.wall)
        if step.wants_producer_id:
            return Decision(WANTS_PRODUCER_ID)
        if step.error:
            return Decision(EndReply(step.error))
        ended = step.next or known
        return self._change(transactional_id, step, EndReply(Errors.NONE, *ended.after_markers()))

    def markers_acknowledged(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition], now: Now
    ) -> Decision[bool]:
        """These partitions hold their marker, or are gone. True when the transaction is complete with it."""
        known = self.transactions.get(transactional_id)
        if known is None or not known.state.is_prepared or known.producer != producer:
            return Decision(True)  # the answer to markers of a transaction that is over
        owing = self._unacknowledged.get(transactional_id)
        if owing is None:
            self.undo.key(self._unacknowledged, transactional_id)
            owing = self._unacknowledged[transactional_id] = dict(known.partitions)
        acknowledged = [partition for partition in partitions if partition in owing]
        self.undo.step(lambda: owing.update(dict.fromkeys(acknowledged)))
        for partition in acknowledged:
            del owing[partition]
        if owing:
            return Decision(False)
        completed = known.complete(now.wall)
        if completed.producer_id != known.producer_id:
            # The client saw 32766 and then 0 of the new id: 32767 was the coordinator's own.
            self.undo.key(self._bumps, transactional_id)
            self._bumps[transactional_id] = (completed.producer, known.epoch - 1)
        return Decision(True, (self._record(transactional_id, completed),))

    # ---- questions

    def load(self) -> Load:
        return Load(len(self.transactions), self.open_transactions)

    def find(self, transactional_id: str) -> Transaction | None:
        """While markers are written its partitions are those that still miss theirs."""
        found = self.transactions.get(transactional_id)
        owing = self._unacknowledged.get(transactional_id)
        return found if found is None or owing is None else found._replace(partitions=dict(owing))

    def listed(self, wanted: ListFilter, now: Now) -> list[Listed]:
        states = frozenset(BY_TITLE[title] for title in wanted.states if title in BY_TITLE)
        return [
            Listed(name, transaction.producer_id, transaction.state)
            for name, transaction in self.transactions.items()
            if (not wanted.producer_ids or transaction.producer_id in wanted.producer_ids)
            and (not wanted.states or transaction.state in states)
            and (wanted.longer_than_ms < 0 or now.wall - transaction.started > wanted.longer_than_ms)
            and (wanted.matches is None or wanted.matches(name))
        ]

    # ---- the log

    def replay(
        self, record: CoordinatorRecord | Packed, offset: int, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        assert isinstance(record, CoordinatorRecord) and isinstance(record.key, TransactionLogKey)
        name = record.key.transactional_id
        if record.value is None:
            self._forget(name)
            return
        assert isinstance(record.value, TransactionLogValue)
        before = self.transactions.get(name)
        transaction = self.transactions[name] = Transaction.of(record.value)
        was_open = before is not None and not before.state.is_idle
        self.open_transactions += (not transaction.state.is_idle) - was_open
        if not transaction.state.is_prepared:
            self._unacknowledged.pop(name, None)

    def _forget(self, name: str) -> None:
        known = self.transactions.get(name)
        self.open_transactions -= known is not None and not known.state.is_idle
        for table in (self.transactions, self._unacknowledged, self._deadlines, self._bumps):
            table.pop(name, None)

    def complete_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nobody writes to `__transaction_state` in a transaction."""

    def _record(self, name: str, transaction: Transaction) -> CoordinatorRecord:
        version = int(self.settings.feature_level >= FLEXIBLE_SINCE)
        value = transaction.value()
        if not version:
            # A log without tagged fields cannot hold what only TV2 needs.
            value.previous_producer_id = value.next_producer_id = NONE
            value.client_transaction_version = 0
        return CoordinatorRecord(TransactionLogKey(name), value, version)

    def _change(self, name: str, step: Step, reply: ReplyT) -> Decision[ReplyT]:
        if step.next is None:
            return Decision(reply)
        self._note_bump(name, step)
        effects = (self._markers(name, step.next),) if step.next.state.is_prepared else ()
        return Decision(reply, (self._record(name, step.next),), effects)

    def _note_bump(self, name: str, step: Step) -> None:
        if step.next is not None and step.last_epoch != NONE:
            self.undo.key(self._bumps, name)
            self._bumps[name] = (step.next.producer, step.last_epoch)

    def _markers(self, name: str, transaction: Transaction) -> WriteMarkers:
        return WriteMarkers(
            name,
            transaction.producer,
            transaction.state is TransactionState.PREPARE_COMMIT,
            tuple(transaction.partitions),
            self.coordinator_epoch,
            transaction.client_version,
        )

    def _last_epoch(self, name: str, transaction: Transaction) -> int:
        producer, last_epoch = self._bumps.get(name, (None, NONE))
        return last_epoch if producer == transaction.producer else NONE

    # ---- time

    def loaded(self, image: MetadataImage, now: Now) -> Decision[None]:
        """Decisions of before the crash are carried out; open transactions go on with the time they have left."""
        self._follow(image)
        self._looked = self._looked_for_expired = now.monotonic
        effects = []
        for name, transaction in self.transactions.items():
            if transaction.state.is_prepared:
                effects.append(self._markers(name, transaction))
            elif transaction.state is TransactionState.ONGOING:
                left = transaction.started + transaction.timeout_ms - now.wall
                self._arm(name, now.monotonic + min(max(left, 0), transaction.timeout_ms), transaction.timeout_ms)
        return Decision(None, effects=tuple(effects))

    def on_metadata(self, image: MetadataImage, now: Now) -> Decision[None]:
        """Deleted partitions are noticed where their markers are written."""
        self._follow(image)
        return _UNCHANGED

    def _follow(self, image: MetadataImage) -> None:
        level = image.features.get(FEATURE, 0)
        if level != self.settings.feature_level:
            self.settings = self.settings._replace(feature_level=level)

    def tick(self, now: Now) -> Decision[None]:
        """What the log refuses is looked for again when it is time to look for more."""
        records: list[CoordinatorRecord] = []
        effects: list[WriteMarkers | TimedOut] = []
        if self._earliest is not None and now.monotonic >= self._next_timeout(self._earliest):
            self._looked = now.monotonic
            self._abort_timed_out(now, records, effects)
            self.undo.field(self, "_earliest")
            self._earliest = min(self._deadlines.values(), default=None)
        if now.monotonic >= self._looked_for_expired + self.settings.expiration_check_ms:
            self._looked_for_expired = now.monotonic
            expired = list(islice(self._expired(now), EXPIRED_AT_ONCE))
            if len(expired) == EXPIRED_AT_ONCE:
                self._looked_for_expired = Millis(now.monotonic + PAUSE_MS - self.settings.expiration_check_ms)
            records += [tombstone(TransactionLogKey(name)) for name in expired]
        return Decision(None, tuple(records), tuple(effects))

    def _abort_timed_out(
        self, now: Now, records: list[CoordinatorRecord], effects: list["WriteMarkers | TimedOut"]
    ) -> None:
        for name, deadline in list(self._deadlines.items()):
            transaction = self.transactions.get(name)
            if transaction is None or transaction.state is not TransactionState.ONGOING:
                self.undo.key(self._deadlines, name)
                del self._deadlines[name]
            elif deadline <= now.monotonic:
                step = transaction.fence(NONE, self.settings.feature_level, now.wall)
                if step.next is None:
                    effects.append(TimedOut(name, transaction.producer))
                else:
                    self._note_bump(name, step)
                    records.append(self._record(name, step.next))
                    effects.append(self._markers(name, step.next))

    def time_out(
        self, transactional_id: str, producer: Producer, now: Now, fresh_id: int = NONE
    ) -> Decision[WantsProducerId | None]:
        """Aborts a transaction past its time. Only one whose epochs are used up needs the fresh id."""
        known = self.transactions.get(transactional_id)
        if known is None or known.state is not TransactionState.ONGOING or known.producer != producer:
            return Decision(None)
        step = known.fence(fresh_id, self.settings.feature_level, now.wall)
        if step.next is None:
            return Decision(WANTS_PRODUCER_ID)
        return self._change(transactional_id, step, None)

    def next_tick(self) -> Millis | None:
        if not self.transactions:
            return None
        expiry = Millis(self._looked_for_expired + self.settings.expiration_check_ms)
        return expiry if self._earliest is None else min(expiry, self._next_timeout(self._earliest))

    def _next_timeout(self, earliest: Millis) -> Millis:
        """Timeouts that fall close together are dealt with together."""
        return Millis(max(earliest, self._looked + self.settings.timeout_check_ms))

    def _arm(self, name: str, deadline: int, timeout_ms: int) -> None:
        if timeout_ms != NO_TIMEOUT:
            self.undo.key(self._deadlines, name)
            self.undo.field(self, "_earliest")
            self._deadlines[name] = Millis(deadline)
            if self._earliest is None or deadline < self._earliest:
                self._earliest = Millis(deadline)

    def _expired(self, now: Now) -> Iterator[str]:
        horizon = now.wall - self.settings.id_expiration_ms
        return (name for name, txn in self.transactions.items() if txn.state.is_idle and txn.updated <= horizon)

    def resigned(self) -> tuple[Respond, ...]:
        return ()
