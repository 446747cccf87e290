"""The shape every coordinator core has: one shard is the state kept in one partition of an internal topic.

Commands are methods of the shard that take what was asked and the time and return a Decision. Its records are appended
and replayed at once, its reply is given and its effects are performed when they are committed. A log that refuses the
records changes nothing: what the command changed in memory is undone. A reply that cannot be given yet is `Parked`; the
shard answers it later by a `Respond` effect with the same token.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.coordinator.records import CoordinatorRecord, Packed
from ottla.coordinator.undo import Undo
from ottla.metadata.image import MetadataImage
from ottla.model import core
from ottla.model.core import ReplyT_co
from ottla.model.ids import Millis

ShardT = TypeVar("ShardT", bound="Shard")


class Decision(core.Decision[ReplyT_co, CoordinatorRecord | Packed]):
    """Of packed records there is at most one, and then nothing beside it."""

    __slots__ = ()


class Now(NamedTuple):
    """The time in both senses: a wall clock may jump, so what is written uses it and what expires soon does not."""

    wall: Millis
    """Since 1970: commit times, retention."""
    monotonic: Millis
    """For deadlines of members and waits."""


class Parked(NamedTuple):
    """In place of a reply: it comes later, as a Respond with this token."""

    token: int


class Respond(NamedTuple):
    """Effect: gives the parked reply."""

    token: int
    response: Any


class Run(NamedTuple):
    """Effect: work too long for the loop. `work` runs in another thread and touches nothing of the shard.

    `then` is called with what it returned, as one more command of the shard.
    """

    work: Callable[[], Any]
    then: Callable[[Any, Now], Decision[Any]]


class Shard(Protocol):
    @property
    def undo(self) -> Undo:
        """Takes back what a command changed in memory, should the log refuse its records."""

    def replay(
        self, record: CoordinatorRecord | Packed, offset: int, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        """The only durable mutator. `producer_id` is that of the batch if the record belongs to a transaction.

        `offset` is that of the record, or of the first of packed ones; the log gives back what was packed one by one.
        """

    def complete_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """A COMMIT or ABORT marker of that producer is in the log now."""

    def loaded(self, image: MetadataImage, now: Now) -> Decision[None]:
        """Everything is replayed: arms what is kept in memory only, such as the deadlines of members."""

    def on_metadata(self, image: MetadataImage, now: Now) -> Decision[None]:
        """The cluster changed: topics were created, deleted, given more partitions."""

    def tick(self, now: Now) -> Decision[None]:
        """A decide for time."""

    def next_tick(self) -> Millis | None:
        """When `tick` has something to do, by the monotonic clock; None for never. May change with every command."""

    def resigned(self) -> tuple[Respond, ...]:
        """The partition went to another broker: answers for everyone who waits."""
