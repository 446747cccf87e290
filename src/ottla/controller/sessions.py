"""Which brokers are alive, as far as the active controller can tell: heartbeats, and connections that break.

Soft state: no word of it is in the log, and a controller that takes over begins without any. A broker is fenced when
its session ends, as in Kafka, or when its connection broke and it is not back after a short grace
(`ottla.broker.disconnect.grace.ms`). Whoever runs the controller asks after those that are `missing`, and says which of
them have `answered` and which are `dead`: a process that was killed is fenced at once, one that hangs after its
session.
"""

from collections.abc import Container, Iterable, Iterator
from typing import Final, NamedTuple

from ottla.metadata.image import BrokerRegistration
from ottla.model.ids import Millis
from ottla.model.properties import Settings

NEVER: Final = Millis(1 << 62)
NO_OFFSET: Final = -1
STALL: Final = 500
"""Milliseconds by which a check may be late. After more the controller was the one that slept (stopped, swapped out),
and heartbeats are probably waiting to be read: brokers get this long again before they are fenced."""


_TIMED_OUT: Final = "its session timed out"
_DISCONNECTED: Final = "its connection broke and it did not come back"
_DEAD: Final = "its process is gone: nobody listens at its address any more"


class Silent(NamedTuple):
    broker_id: int
    reason: str


class _Contact:
    __slots__ = (
        "connection",
        "dead_at",
        "epoch",
        "grace",
        "heard",
        "lost_at",
        "metadata_offset",
        "not_before",
        "shutdown_offset",
    )

    def __init__(self, epoch: int, heard: Millis) -> None:
        self.epoch = epoch
        self.heard = heard
        self.connection: object = None
        self.lost_at = NEVER
        """When the connection broke; NEVER while nobody has said so."""
        self.grace = 0
        self.dead_at = NEVER
        """When its process was found to be gone."""
        self.not_before = heard
        self.metadata_offset = NO_OFFSET
        self.shutdown_offset = NO_OFFSET

    def returned(self, now: Millis) -> None:
        self.heard = now
        self.lost_at = self.dead_at = NEVER

    def deadline(self, timeout: int) -> int:
        """When the broker is to be fenced if nothing is heard of it until then."""
        if self.dead_at != NEVER:
            return self.dead_at
        silent = self.heard + timeout
        if self.lost_at != NEVER and self.grace >= 0:
            silent = min(silent, self.lost_at + self.grace)
        return max(silent, self.not_before)


class Sessions:
    """A broker in the controller's own process needs no session: it lives and dies with the controller."""

    __slots__ = ("_activation_grace", "_contacts", "_grace", "_in_process", "_registered_at", "_timeout")

    def __init__(self, timeout: int, in_process: int, *, grace: int = -1, activation_grace: int = -1) -> None:
        self._timeout = timeout
        self._in_process = in_process
        self._grace = grace
        self._activation_grace = activation_grace
        self._contacts: dict[int, _Contact] = {}
        self._registered_at: dict[int, int] = {}

    @classmethod
    def of(cls, settings: Settings) -> "Sessions":
        return cls(
            settings.get_int("broker.session.timeout.ms"),
            settings.node_id,
            grace=settings.get_int("ottla.broker.disconnect.grace.ms"),
            activation_grace=settings.get_int("ottla.broker.activation.grace.ms"),
        )

    def begin(self, brokers: Iterable[BrokerRegistration], now: Millis, suspects: Container[int] | None = None) -> None:
        """A new active controller has heard of nobody yet: each broker must show up within a grace from now.

        `suspects` are likely to be dead, such as the node that led the quorum before. They get the short grace, the
        others the longer one: they may only need a moment to learn who leads now. None suspects everybody.
        """
        self._contacts.clear()
        for broker in brokers:
            if broker.id != self._in_process and not broker.fenced:
                contact = self._contacts[broker.id] = _Contact(broker.epoch, now)
                contact.lost_at = now
                is_suspect = suspects is None or broker.id in suspects
                contact.grace = self._grace if is_suspect else self._activation_grace

    # Signs of life

    def heard(self, broker_id: int, epoch: int, now: Millis, metadata_offset: int = NO_OFFSET) -> None:
        contact = self._contact(broker_id, epoch, now)
        contact.returned(now)
        contact.metadata_offset = max(contact.metadata_offset, metadata_offset)

    def connected(self, broker_id: int, epoch: int, now: Millis, connection: object = None) -> None:
        """The broker spoke over this connection; from now on it is the one that may be missed."""
        contact = self._contact(broker_id, epoch, now)
        contact.connection = connection
        contact.returned(now)

    def disconnected(self, broker_id: int, epoch: int, now: Millis, connection: object = None) -> None:
        """A connection of this life of the broker broke. An old one may be reported long after a new one took over."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact.epoch != epoch or contact.lost_at != NEVER:
            return
        if connection is None or contact.connection is None or contact.connection is connection:
            contact.lost_at = now
            contact.grace = self._grace

    def missing(self, brokers: Iterable[BrokerRegistration]) -> Iterator[BrokerRegistration]:
        """Unfenced brokers without a connection, whose grace is running."""
        for broker in brokers:
            contact = self._contacts.get(broker.id)
            if broker.fenced or contact is None or contact.epoch != broker.epoch:
                continue
            if contact.lost_at != NEVER and contact.grace >= 0 and contact.dead_at == NEVER:
                yield broker

    def answered(self, broker_id: int, epoch: int, now: Millis) -> None:
        """Its process is there and has not found its way back yet: the grace begins anew, the session goes on."""
        contact = self._contacts.get(broker_id)
        if contact is not None and contact.epoch == epoch and contact.lost_at != NEVER:
            contact.lost_at = now

    def dead(self, broker_id: int, epoch: int, now: Millis) -> None:
        """Its process is known to be gone. One that has come back meanwhile is another matter."""
        contact = self._contacts.get(broker_id)
        if contact is not None and contact.epoch == epoch and contact.lost_at != NEVER:
            contact.dead_at = now

    def left(self, broker_id: int) -> None:
        """The broker was let go: its next life need not wait for the end of this session."""
        self._contacts.pop(broker_id, None)

    def _contact(self, broker_id: int, epoch: int, now: Millis) -> _Contact:
        contact = self._contacts.get(broker_id)
        if contact is None or contact.epoch != epoch:
            contact = self._contacts[broker_id] = _Contact(epoch, now)
        return contact

    # Who is there

    def is_alive(self, broker: BrokerRegistration, now: Millis) -> bool:
        """Whether this controller has reason to believe that the process which registered is still running."""
        contact = self._contacts.get(broker.id)
        if contact is None or contact.epoch != broker.epoch or broker.id == self._in_process:
            return False
        return contact.lost_at == NEVER and now < contact.heard + self._timeout

    def silent(self, brokers: Iterable[BrokerRegistration], now: Millis) -> Iterator[Silent]:
        """Unfenced brokers that are to be fenced. One never heard of is given a whole session from now on."""
        for broker in brokers:
            if broker.fenced or broker.id == self._in_process:
                continue
            contact = self._contact(broker.id, broker.epoch, now)
            late = now - contact.deadline(self._timeout)
            if late > STALL and contact.not_before <= contact.heard:
                contact.not_before = Millis(now + STALL)
            elif late >= 0:
                yield Silent(broker.id, self._why(contact, now))

    def _why(self, contact: _Contact, now: Millis) -> str:
        if contact.dead_at != NEVER:
            return _DEAD
        return _TIMED_OUT if now >= contact.heard + self._timeout else _DISCONNECTED

    def next_deadline(self, brokers: Iterable[BrokerRegistration], now: Millis) -> Millis | None:
        deadlines = [
            self._contact(broker.id, broker.epoch, now).deadline(self._timeout)
            for broker in brokers
            if not broker.fenced and broker.id != self._in_process
        ]
        return Millis(min(deadlines)) if deadlines else None

    def forget(self, broker_id: int) -> None:
        self._contacts.pop(broker_id, None)
        self._registered_at.pop(broker_id, None)

    # Offsets that heartbeats are compared with

    def registered(self, broker_id: int, offset: int) -> None:
        self._registered_at[broker_id] = offset

    def registration_offset(self, broker: BrokerRegistration) -> int:
        """Where the registration stands in the log; one that came with a snapshot is at or below its epoch."""
        return self._registered_at.get(broker.id, broker.epoch)

    def shutting_down(self, broker_id: int, epoch: int, offset: int, now: Millis) -> None:
        """The first call counts: others must have read up to `offset` before the broker may go."""
        contact = self._contact(broker_id, epoch, now)
        if contact.shutdown_offset == NO_OFFSET:
            contact.shutdown_offset = offset

    def not_leaving(self, broker_id: int) -> None:
        contact = self._contacts.get(broker_id)
        if contact is not None:
            contact.shutdown_offset = NO_OFFSET

    def shutdown_offset(self, broker: BrokerRegistration) -> int:
        contact = self._contacts.get(broker.id)
        return NO_OFFSET if contact is None or contact.epoch != broker.epoch else contact.shutdown_offset

    def lowest_active_offset(self, brokers: Iterable[BrokerRegistration]) -> int:
        """How far the slowest active broker has read. The one in this process reads what is committed here, at once."""
        offsets = [
            contact.metadata_offset if contact is not None and contact.epoch == broker.epoch else NO_OFFSET
            for broker, contact in ((b, self._contacts.get(b.id)) for b in brokers)
            if broker.is_active and broker.id != self._in_process
        ]
        return min(offsets, default=NEVER)
