"""The markers of a transaction that is decided: who is asked again, how soon, and what is told of who does not take
his."""

import logging
from asyncio import sleep
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

import pytest

from ottla.broker.coordination.markers import Marker, Results
from ottla.broker.coordination.rounds import MarkerRounds
from ottla.coordinator.transaction.machine import Producer
from ottla.coordinator.transaction.shard import WriteMarkers
from ottla.metadata.image import MetadataImage, PartitionImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition, Uuid
from ottla.testing.sim.loop import SimLoop

A, B, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)
MARKERS = WriteMarkers("payments", Producer(7, 3), True, (A, B), 5, 2)
ID = Uuid(bytes(16))
PLACED = PartitionImage((1,), (ID,), (1,), (), (), (), (), 1, 0, 0, 0)


class Scene:
    """Partitions take their markers but for those that refuse."""

    def __init__(self) -> None:
        self.loop = SimLoop(Random(1))
        self.refusals: dict[TopicPartition, Errors] = {}
        self.asked: list[tuple[int, list[TopicPartition]]] = []
        """When, in milliseconds, and whom."""
        self.acknowledged: list[TopicPartition] = []
        self.is_current = True
        topic = TopicImage("t", ID, {0: PLACED, 1: PLACED})
        image = MetadataImage(topics={"t": topic}, topics_by_id={ID: topic})
        self.rounds = MarkerRounds(self.loop, self, lambda: image, lambda _: self.is_current, self._acknowledge)

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], then: Callable[[Results], None]) -> None:
        assert marker == Marker(7, 3, True, 5, 2)
        names = list(partitions)
        self.asked.append((round(self.loop.time() * 1000), names))
        self.loop.call_soon(then, {name: self.refusals.get(name, Errors.NONE) for name in names})

    def _acknowledge(self, markers: WriteMarkers, done: Sequence[TopicPartition]) -> None:
        assert markers.transactional_id == "payments"
        self.acknowledged += done

    def go_on_for(self, seconds: float) -> None:
        self.loop.run_until_complete(sleep(seconds))


@pytest.fixture
def scene() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.loop.close()


def test_who_refuses_is_asked_again_and_who_has_its_marker_is_not(scene: Scene) -> None:
    scene.refusals[B] = Errors.NOT_LEADER_OR_FOLLOWER
    scene.rounds.begin(MARKERS)
    scene.go_on_for(0.1)
    assert scene.asked == [(0, [A, B]), (20, [B]), (60, [B])]
    assert scene.acknowledged == [A]
    scene.refusals.clear()
    scene.go_on_for(60)
    assert scene.asked[3:] == [(140, [B])]
    assert scene.acknowledged == [A, B]


def test_a_partition_that_is_deleted_or_past_this_epoch_needs_no_marker(scene: Scene) -> None:
    scene.refusals[A] = Errors.INVALID_PRODUCER_EPOCH
    scene.rounds.begin(MARKERS._replace(partitions=(GONE, A)))
    scene.go_on_for(60)
    assert scene.asked == [(0, [A])]
    assert scene.acknowledged == [GONE, A]


def test_whoever_no_longer_keeps_the_transactional_id_stops(scene: Scene) -> None:
    scene.refusals[B] = Errors.LEADER_NOT_AVAILABLE
    scene.rounds.begin(MARKERS)
    scene.go_on_for(0.03)
    scene.is_current = False
    scene.go_on_for(60)
    assert scene.asked == [(0, [A, B]), (20, [B])]


def test_a_partition_that_does_not_take_its_marker_for_long_is_named_ever_less_often(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.refusals[B] = Errors.CLUSTER_AUTHORIZATION_FAILED
    with caplog.at_level(logging.WARNING):
        scene.rounds.begin(MARKERS)
        scene.go_on_for(2)
        assert caplog.messages == []
        scene.go_on_for(70)
    assert len(scene.asked) > 70
    assert (
        caplog.messages
        == [
            "the end of a transaction of payments is decided, and t-1 does not take its marker "
            "(CLUSTER_AUTHORIZATION_FAILED): readers of committed records wait there. Tried again every second"
        ]
        * 4
    )
