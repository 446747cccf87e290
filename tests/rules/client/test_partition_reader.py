"""Reading one partition's batches between two offsets: nothing more, nothing less, and no loss in silence."""

from collections.abc import Iterator

import pytest

from ottla.client.addresses import Address
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.partition_reader import FETCH_BYTES, LEAST_FETCH_BYTES, DataLost, PartitionReader
from ottla.client.errors import CorruptAnswer, KafkaError
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.protocol.records import NewRecord, build_batch
from tests.rules.client.scripted_broker import HurriedClock, Reply, ScriptedBroker, metadata

PLACE = TopicPartition("orders", 0)


class Scene:
    """Answers metadata by itself, everything else from a list; keeps what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self._replies: Iterator[Reply] = iter(replies)
        self.asked: list[Message] = []
        self.broker = ScriptedBroker(self._answer)

    def _answer(self, request: Message) -> Reply:
        if isinstance(request, messages.MetadataRequest):
            return metadata(self.broker.port)
        self.asked.append(request)
        return next(self._replies)

    def read(self, start: int, end: int, *, skip_lost: bool = False) -> list[tuple[int, list[int]]]:
        """Each part's offset, and where its batches begin."""
        with self.broker, Cluster([Address("127.0.0.1", self.broker.port)], timeout_s=20) as cluster:
            reader = PartitionReader(cluster, PLACE, start, end, skip_lost=skip_lost)
            return [(low, [header.base_offset for header, _ in batches]) for low, batches in reader]

    @property
    def fetches(self) -> list[tuple[int, int]]:
        """Offset and size of each fetch."""
        return [
            (partition.fetch_offset, partition.partition_max_bytes)
            for request in self.asked
            if isinstance(request, messages.FetchRequest)
            for partition in request.topics[0].partitions
        ]


def batch(at: int, count: int, size: int = 10) -> bytearray:
    return build_batch([NewRecord(None, bytes(size), 0)] * count, base_offset=at)


def fetched(
    *batches: bytes | bytearray, error: Errors = Errors.NONE, high_watermark: int = 99
) -> messages.FetchResponse:
    partition = messages.FetchResponse.PartitionData(
        error_code=error, high_watermark=high_watermark, records=b"".join(batches)
    )
    return messages.FetchResponse(
        responses=[messages.FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])]
    )


def offset(value: int) -> messages.ListOffsetsResponse:
    partition = messages.ListOffsetsResponse.ListOffsetsPartitionResponse(offset=value)
    return messages.ListOffsetsResponse(
        topics=[messages.ListOffsetsResponse.ListOffsetsTopicResponse(name="orders", partitions=[partition])]
    )


def test_batches_come_until_the_end_is_reached() -> None:
    scene = Scene(fetched(batch(0, 10), batch(10, 5)), fetched(batch(15, 10), batch(25, 10)))
    assert scene.read(3, 20) == [(3, [0, 10]), (15, [15])]
    assert [at for at, _ in scene.fetches] == [3, 15]


def test_an_empty_range_asks_nobody() -> None:
    scene = Scene()
    assert scene.read(5, 5) == []
    assert scene.asked == []


def test_offsets_missing_before_the_end_are_no_loss_but_the_work_of_compaction() -> None:
    scene = Scene(fetched(batch(0, 2)), fetched(batch(50, 2)))
    assert scene.read(0, 20) == [(0, [0])]


def test_a_batch_cut_off_at_the_end_of_an_answer_comes_with_the_next() -> None:
    scene = Scene(fetched(batch(0, 5), batch(5, 5)[:70]), fetched(batch(5, 5)))
    assert scene.read(0, 10) == [(0, [0]), (5, [5])]


def test_about_as_much_is_fetched_as_is_left() -> None:
    scene = Scene(fetched(batch(0, 1000, 100)), fetched(batch(1000, 9_000)))
    scene.read(0, 10_000)
    (_, guess), (_, known) = scene.fetches
    assert guess == FETCH_BYTES
    assert 9_000 * 100 < known < 9_000 * 130
    short = Scene(fetched(batch(0, 10)))
    short.read(0, 10)
    assert short.fetches == [(0, LEAST_FETCH_BYTES)]


def test_deleted_offsets_are_an_error() -> None:
    scene = Scene(fetched(error=Errors.OFFSET_OUT_OF_RANGE), offset(7))
    with pytest.raises(DataLost, match="offsets 2 to 6 of orders-0 cannot be read: the log begins at 7"):
        scene.read(2, 10)


def test_deleted_offsets_are_skipped_when_that_is_asked_for() -> None:
    scene = Scene(fetched(error=Errors.OFFSET_OUT_OF_RANGE), offset(7), fetched(batch(5, 5)))
    assert scene.read(2, 10, skip_lost=True) == [(7, [5])]


def test_a_log_that_ends_before_the_range_is_an_error() -> None:
    scene = Scene(fetched(error=Errors.OFFSET_OUT_OF_RANGE), offset(0), offset(4))
    with pytest.raises(DataLost, match="offsets 8 to 9 of orders-0 cannot be read: the log ends at 4"):
        scene.read(8, 10)


def test_a_log_that_gives_nothing_more_is_waited_for_and_then_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.blocking.deadline.time", HurriedClock())
    scene = Scene(fetched(batch(0, 4)), *[fetched(high_watermark=4)] * 100_000)
    with pytest.raises(DataLost, match=r"offsets 4 to 9 of orders-0 .* its high watermark is 4"):
        scene.read(0, 10)


def test_a_lost_connection_and_a_moved_leader_are_tried_again() -> None:
    scene = Scene(None, fetched(error=Errors.NOT_LEADER_OR_FOLLOWER), fetched(batch(0, 5)), None, fetched(batch(5, 5)))
    assert scene.read(0, 10) == [(0, [0]), (5, [5])]


def test_an_error_that_will_not_pass_is_raised() -> None:
    scene = Scene(fetched(error=Errors.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        scene.read(0, 10)


def test_a_damaged_batch_is_named_by_its_offset() -> None:
    damaged = batch(0, 5)
    damaged[-1] ^= 1
    with pytest.raises(CorruptAnswer, match="offset 0 of orders-0"):
        Scene(fetched(damaged)).read(0, 5)


def test_who_stops_early_leaves_no_answer_behind_for_the_next_request() -> None:
    scene = Scene(fetched(batch(0, 5)), fetched(batch(5, 5)), offset(77))
    with scene.broker, Cluster([Address("127.0.0.1", scene.broker.port)], timeout_s=20) as cluster:
        parts = iter(PartitionReader(cluster, PLACE, 0, 10))
        next(parts)
        parts.close()  # type: ignore[attr-defined]
        assert scene.broker.connections == 1
        cluster.metadata()
        assert scene.broker.connections == 2
