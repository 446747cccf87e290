"""When something goes wrong between client and cluster: what is tried again, and for how long."""

import socket
from collections.abc import Iterator

import pytest

from ottla.client.addresses import Address
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.client.errors import KafkaError, RequestTooLarge, TimedOut, Unreachable
from ottla.client.offsets import LATEST, Found, list_offsets
from ottla.client.producing import Delivered
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.protocol.records import NewRecord, build_batch
from tests.rules.client.scripted_broker import HurriedClock, Reply, ScriptedBroker, metadata

PLACE = TopicPartition("orders", 0)


def client(broker: ScriptedBroker) -> Cluster:
    return Cluster([Address("127.0.0.1", broker.port)], timeout_s=20)


def offset(error: Errors, value: int = -1) -> messages.ListOffsetsResponse:
    partition = messages.ListOffsetsResponse.ListOffsetsPartitionResponse(error_code=error, offset=value)
    return messages.ListOffsetsResponse(
        topics=[messages.ListOffsetsResponse.ListOffsetsTopicResponse(name="orders", partitions=[partition])]
    )


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


def test_a_retriable_error_is_asked_again_with_fresh_metadata() -> None:
    scene = Scene(offset(Errors.NOT_LEADER_OR_FOLLOWER), offset(Errors.LEADER_NOT_AVAILABLE), offset(Errors.NONE, 42))
    with scene.broker, client(scene.broker) as cluster:
        assert list_offsets(cluster, {PLACE: LATEST}) == {PLACE: Found(42, -1, -1)}
    assert len(scene.asked) == 3


def test_an_error_that_will_not_pass_is_given_back_at_once() -> None:
    scene = Scene(offset(Errors.TOPIC_AUTHORIZATION_FAILED))
    with scene.broker, client(scene.broker) as cluster:
        outcome = list_offsets(cluster, {PLACE: LATEST})[PLACE]
    assert isinstance(outcome, KafkaError)
    assert outcome.error == Errors.TOPIC_AUTHORIZATION_FAILED
    assert len(scene.asked) == 1


def test_a_connection_that_breaks_before_the_answer_is_replaced() -> None:
    scene = Scene(None, offset(Errors.NONE, 7))
    with scene.broker, client(scene.broker) as cluster:
        assert list_offsets(cluster, {PLACE: LATEST}) == {PLACE: Found(7, -1, -1)}
    assert len(scene.asked) == 2


def test_trying_ends_at_the_deadline_with_the_last_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.blocking.deadline.time", HurriedClock())
    scene = Scene(*[offset(Errors.LEADER_NOT_AVAILABLE)] * 100)
    with scene.broker, client(scene.broker) as cluster:
        outcome = list_offsets(cluster, {PLACE: LATEST})[PLACE]
    assert isinstance(outcome, KafkaError)
    assert outcome.error == Errors.LEADER_NOT_AVAILABLE
    assert 2 <= len(scene.asked) <= 40


def test_a_broker_that_only_hangs_up_uses_up_the_deadline_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.blocking.deadline.time", HurriedClock())
    text = r"MetadataRequest was not done within 20 s; .* the broker closed it"
    with (
        ScriptedBroker(lambda _: None) as broker,
        client(broker) as cluster,
        pytest.raises(TimedOut, match=text),
    ):
        cluster.metadata()


def test_a_cluster_that_never_was_is_not_waited_for() -> None:
    with socket.socket() as taken:  # bound and silent: a port that was let go may be another process's by now
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with Cluster([Address("127.0.0.1", port)], timeout_s=20) as cluster, pytest.raises(Unreachable) as caught:
            cluster.metadata()
    assert caught.value.reasons == {f"127.0.0.1:{port}": "nothing listens there"}


def test_the_bootstrap_connection_serves_its_broker_too() -> None:
    scene = Scene(offset(Errors.NONE, 1))
    with scene.broker, client(scene.broker) as cluster:
        list_offsets(cluster, {PLACE: LATEST})
        assert scene.broker.connections == 1


def produced(error: Errors, base_offset: int = -1) -> messages.ProduceResponse:
    partition = messages.ProduceResponse.PartitionProduceResponse(error_code=error, base_offset=base_offset)
    return messages.ProduceResponse(
        responses=[messages.ProduceResponse.TopicProduceResponse(name="orders", partition_responses=[partition])]
    )


IDENTITY = messages.InitProducerIdResponse(producer_id=9, producer_epoch=3)


def batches(scene: Scene) -> list[tuple[int, int, int, int]]:
    """Producer id, epoch, first sequence and number of records of each batch that was sent."""
    found = []
    for request in scene.asked:
        if isinstance(request, messages.ProduceRequest):
            records = request.topic_data[0].partition_data[0].records
            assert records is not None
            header = b.read_header(bytes(records))
            found.append((header.producer_id, header.producer_epoch, header.base_sequence, header.record_count))
    return found


def test_a_batch_is_repeated_with_the_same_sequence_until_it_is_acknowledged() -> None:
    scene = Scene(
        IDENTITY, None, produced(Errors.NOT_LEADER_OR_FOLLOWER), produced(Errors.NONE, 5), produced(Errors.NONE, 7)
    )
    delivered: list[Delivered] = []
    with scene.broker, client(scene.broker) as cluster:
        producer = Producer(cluster, on_delivery=delivered.append)
        producer.send("orders", b"a", timestamp=1)
        producer.send("orders", b"b", timestamp=1)
        producer.flush()
        producer.send("orders", b"c", timestamp=1)
        producer.flush()
    assert batches(scene) == [(9, 3, 0, 2), (9, 3, 0, 2), (9, 3, 0, 2), (9, 3, 2, 1)]
    assert [(one.base_offset, len(one.records)) for one in delivered] == [(5, 2), (7, 1)]


def test_a_batch_that_was_written_by_a_lost_attempt_counts_as_delivered() -> None:
    scene = Scene(IDENTITY, None, produced(Errors.DUPLICATE_SEQUENCE_NUMBER))
    delivered: list[Delivered] = []
    with scene.broker, client(scene.broker) as cluster:
        producer = Producer(cluster, on_delivery=delivered.append)
        producer.send("orders", b"a", timestamp=1)
        producer.flush()
    assert [one.base_offset for one in delivered] == [-1]


def test_a_batch_that_is_too_large_is_halved_and_keeps_its_order_and_sequence() -> None:
    too_large = produced(Errors.MESSAGE_TOO_LARGE)
    scene = Scene(
        IDENTITY, too_large, produced(Errors.NONE, 0), too_large, produced(Errors.NONE, 2), produced(Errors.NONE, 3)
    )
    delivered: list[Delivered] = []
    with scene.broker, client(scene.broker) as cluster:
        producer = Producer(cluster, on_delivery=delivered.append)
        for value in (b"a", b"b", b"c", b"d"):
            producer.send("orders", value, timestamp=1)
        producer.flush()
    assert batches(scene) == [(9, 3, 0, 4), (9, 3, 0, 2), (9, 3, 2, 2), (9, 3, 2, 1), (9, 3, 3, 1)]
    assert [[record.value for record in one.records] for one in delivered] == [[b"a", b"b"], [b"c"], [b"d"]]


def test_one_record_that_is_too_large_is_an_error() -> None:
    scene = Scene(IDENTITY, produced(Errors.MESSAGE_TOO_LARGE))
    with scene.broker, client(scene.broker) as cluster:
        producer = Producer(cluster)
        producer.send("orders", b"a", timestamp=1)
        with pytest.raises(KafkaError, match=r"orders-0: .*MESSAGE_TOO_LARGE"):
            producer.flush()


def limits(frame: int, source: int, message: int) -> messages.DescribeConfigsResponse:
    found = messages.DescribeConfigsResponse
    kind = found.DescribeConfigsResourceResult
    return found(
        results=[
            found.DescribeConfigsResult(
                resource_type=4,
                resource_name="1",
                configs=[
                    kind(name="socket.request.max.bytes", value=str(frame), config_source=source),
                    kind(name="message.max.bytes", value=str(message), config_source=5),
                ],
            )
        ]
    )


@pytest.mark.parametrize(("source", "message"), [(4, 9 << 20), (5, 1 << 20)], ids=["in the file", "the default"])
def test_a_broker_that_hangs_up_on_what_is_over_its_limit_is_not_asked_again(source: int, message: int) -> None:
    scene = Scene(IDENTITY, None, limits(2 << 20, source, message))
    with scene.broker, client(scene.broker) as cluster:
        producer = Producer(cluster)
        producer.send("orders", bytes(3 << 20), timestamp=1)
        with pytest.raises(RequestTooLarge, match=r"socket\.request\.max\.bytes is 2097152"):
            producer.flush()
    assert len(scene.asked) == 3


def test_a_large_batch_below_the_limit_is_sent_again_when_the_connection_breaks() -> None:
    scene = Scene(IDENTITY, None, limits(16 << 20, 4, 1 << 20), produced(Errors.NONE, 5))
    with scene.broker, client(scene.broker) as cluster:
        producer = Producer(cluster)
        producer.send("orders", bytes(3 << 20), timestamp=1)
        producer.flush()
    assert len(batches(scene)) == 2


def test_without_idempotence_no_producer_id_is_asked_for() -> None:
    scene = Scene(produced(Errors.NONE, 0))
    with scene.broker, client(scene.broker) as cluster:
        producer = Producer(cluster, acks=1)
        producer.send("orders", b"a", timestamp=1)
        producer.flush()
    assert batches(scene) == [(-1, -1, -1, 1)]


def test_a_partition_that_is_not_there_is_refused_before_anything_is_sent() -> None:
    scene = Scene()
    text = "topic orders has no partition 4: it has one only, partition 0"
    with scene.broker, client(scene.broker) as cluster, pytest.raises(KafkaError, match=text):
        Producer(cluster).send("orders", b"a", partition=4)


def fetched(error: Errors = Errors.NONE, *values: bytes, at: int = 0) -> messages.FetchResponse:
    records = build_batch([NewRecord(None, value, 1) for value in values], base_offset=at) if values else b""
    partition = messages.FetchResponse.PartitionData(error_code=error, high_watermark=99, records=bytes(records))
    return messages.FetchResponse(
        responses=[messages.FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])]
    )


def read_all(cluster: Cluster, first: int, last: int) -> tuple[list[bytes | None], Consumer]:
    consumer = Consumer(cluster, {PLACE: (first, last)})
    values: list[bytes | None] = []
    while consumer.active:
        for one in consumer.poll(5):
            values += [record.value for record in one.records]
    return values, consumer


def test_a_consumer_goes_on_after_a_new_leader_and_a_lost_connection() -> None:
    scene = Scene(
        fetched(Errors.NONE, b"a", b"b"), fetched(Errors.NOT_LEADER_OR_FOLLOWER), None, fetched(Errors.NONE, b"c", at=2)
    )
    with scene.broker, client(scene.broker) as cluster:
        assert read_all(cluster, 0, 3)[0] == [b"a", b"b", b"c"]
    positions = [
        request.topics[0].partitions[0].fetch_offset
        for request in scene.asked
        if isinstance(request, messages.FetchRequest)
    ]
    assert positions == [0, 2, 2, 2]


def test_records_before_and_after_the_asked_range_are_cut_off_a_batch() -> None:
    scene = Scene(fetched(Errors.NONE, b"a", b"b", b"c", b"d"))
    with scene.broker, client(scene.broker) as cluster:
        assert read_all(cluster, 1, 3)[0] == [b"b", b"c"]


def test_offsets_that_retention_took_are_skipped_and_told() -> None:
    scene = Scene(fetched(Errors.OFFSET_OUT_OF_RANGE), offset(Errors.NONE, 10), fetched(Errors.NONE, b"a", b"b", at=10))
    with scene.broker, client(scene.broker) as cluster:
        values, consumer = read_all(cluster, 3, 12)
    assert values == [b"a", b"b"]
    assert consumer.skipped == {PLACE: (3, 10)}


def test_an_offset_that_is_yet_to_come_is_waited_for() -> None:
    scene = Scene(
        fetched(Errors.OFFSET_OUT_OF_RANGE),
        offset(Errors.NONE, 0),
        offset(Errors.NONE, 2),
        fetched(Errors.NONE, b"two", b"three", at=2),
        fetched(Errors.NONE, b"four", at=4),
    )
    with scene.broker, client(scene.broker) as cluster:
        assert read_all(cluster, 3, 5)[0] == [b"three", b"four"]


def test_an_error_that_will_not_pass_ends_the_consumer() -> None:
    scene = Scene(fetched(Errors.TOPIC_AUTHORIZATION_FAILED))
    with scene.broker, client(scene.broker) as cluster, pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        read_all(cluster, 0, 1)
