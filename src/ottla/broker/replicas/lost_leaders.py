"""Leaders that this broker has just lost, and what Metadata says of them.

A client whose leader was killed asks for metadata within a millisecond, before any controller can have decided. If it
is told the dead leader's name, librdkafka comes back after a second. So the answer waits for the verdict.

Nor may it hear in one answer that the broker is gone and where its partitions are led instead: librdkafka would end its
thread for the broker while that hands the partitions over, lose track of them, and come back after a second as well.
So the broker stays in its list for a moment longer.

But a broker that dies again and again has to leave the list, or librdkafka's pause before it connects anew grows to ten
seconds. In this case it leaves first: whoever asks in the first moment hears that it is gone and its partitions have no
leader, and when he asks again, mostly after 100 ms, who leads them.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Millis

AGAIN_MS: Final = 20_000
"""A broker that is lost twice within this time dies again and again; librdkafka forgets a pause after ten seconds."""
MOMENT_MS: Final = 50
"""Longer than clients need to notice a closed connection, and shorter than the pause before they ask again."""
LINGER_MS: Final = 1_000
"""For how long a broker that was fenced is listed: the slowest client asks after a second."""


class Loss(NamedTuple):
    at: Millis
    again: bool
    before: MetadataImage
    """In which the lost broker still leads."""


class Moment(NamedTuple):
    """What is told in the first moment after a broker died again: these are gone, and what they led has no leader."""

    before: MetadataImage
    gone: frozenset[int]


class LostLeaders:
    __slots__ = ("_fenced_at", "_image", "_last_lost_at", "_losses", "_wait_ms")

    def __init__(self, wait_ms: int, image: MetadataImage) -> None:
        """With a wait of 0 Metadata is as in Kafka."""
        self._wait_ms = wait_ms
        self._image = image
        self._losses: dict[int, Loss] = {}
        """By broker id. They stay until the broker is reached again: a network that stays broken between two brokers
        must not slow down every answer."""
        self._fenced_at: dict[int, Millis] = {}
        self._last_lost_at: dict[int, Millis] = {}

    @property
    def are_told(self) -> bool:
        """Whether Metadata takes any notice of them."""
        return self._wait_ms > 0

    def lost(self, broker_id: int, now: Millis) -> None:
        if broker_id in self._losses:
            return
        last = self._last_lost_at.get(broker_id)
        again = last is not None and now - last < AGAIN_MS
        self._last_lost_at[broker_id] = now
        self._losses[broker_id] = Loss(now, again, self._image)

    def reached(self, broker_id: int) -> bool:
        """Whether it was lost until now."""
        return self._losses.pop(broker_id, None) is not None

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now: Millis) -> None:
        """Brokers that this one does not fetch from are lost when they are fenced."""
        for broker_id, broker in delta.changed_brokers.items():
            known = self._image.brokers.get(broker_id)
            if broker is not None and not broker.fenced:
                self.reached(broker_id)
                self._fenced_at.pop(broker_id, None)
            elif known is not None and not known.fenced:
                self.lost(broker_id, now)
                self._fenced_at[broker_id] = now
        self._image = image

    def lingers(self, broker_id: int, now: Millis) -> bool:
        """Fenced, and still to be listed for a little while, as it does not die again and again."""
        loss, fenced_at = self._losses.get(broker_id), self._fenced_at.get(broker_id)
        if loss is None or loss.again or fenced_at is None or not self._wait_ms:
            return False
        return now < fenced_at + LINGER_MS

    def moment(self, now: Millis) -> Moment | None:
        """Who died again just now, if anybody did."""
        if not self._wait_ms or not self._losses:
            return None
        fresh = {id_: loss for id_, loss in self._losses.items() if loss.again and now < loss.at + MOMENT_MS}
        if not fresh:
            return None
        return Moment(min(fresh.values(), key=lambda loss: loss.at).before, frozenset(fresh))

    def any(self, now: Millis) -> bool:
        """Whether there may soon be news of a leader."""
        return any(now < loss.at + self._wait_ms for loss in self._losses.values())

    def awaited_until(self, leaders: Iterable[int], now: Millis) -> Millis | None:
        """Until when there may be news of one of these; None if there will be none."""
        lost = [self._losses[leader].at for leader in leaders if leader in self._losses]
        until = Millis(max(lost) + self._wait_ms) if lost else now
        return until if now < until else None
