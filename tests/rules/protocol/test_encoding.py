"""What an encoder refuses, what it shares, and how records travel through it uncopied."""

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, EncodeError, Message
from ottla.protocol.frames import encode_response_chunks

Fetch = messages.FetchResponse


class FileSlice:
    """Stands for bytes that lie in a file: all an encoder may ask is how many."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def fetch_response(*records: object) -> messages.FetchResponse:
    data = [Fetch.PartitionData(partition_index=i, records=r) for i, r in enumerate(records)]
    return Fetch(responses=[Fetch.FetchableTopicResponse(topic="t", partitions=data)])


@pytest.mark.parametrize("version", range(4, 19))
def test_records_are_chunks_of_their_own_and_the_rest_is_joined(version: int) -> None:
    first, second = FileSlice(100_000), memoryview(b"in memory")
    chunks = fetch_response(first, None, b"", second).encode_chunks(version)
    assert [type(chunk) for chunk in chunks] == [bytes, FileSlice, bytes, memoryview, bytes][: len(chunks)]
    assert chunks[1] is first
    assert chunks[3] is second
    real = b"".join(b"\0" * 100_000 if chunk is first else bytes(chunk) for chunk in chunks)
    assert real == fetch_response(bytes(100_000), None, b"", b"in memory").encode(version)


def test_a_response_frame_counts_records_that_are_not_in_memory() -> None:
    chunks = encode_response_chunks(1, 12, 7, fetch_response(FileSlice(5_000)))
    assert int.from_bytes(chunks[0][:4], "big") == sum(map(len, chunks)) - 4


def test_records_that_are_no_bytes_cannot_be_joined() -> None:
    with pytest.raises(EncodeError, match="encode_chunks"):
        fetch_response(FileSlice(3)).encode(12)


def test_records_are_decoded_as_views_of_the_input() -> None:
    wire = bytearray(fetch_response(b"abc").encode(12))
    (data,) = messages.FetchResponse.decode(wire, 12).responses[0].partitions
    wire[wire.index(b"abc")] = ord("X")
    assert data.records == b"Xbc"


@pytest.mark.parametrize(
    ("message", "lacks", "has"),
    [
        (messages.ListOffsetsRequest(isolation_level=1), 1, 2),
        (messages.CreateTopicsRequest(validate_only=True), None, 2),
        (messages.JoinGroupRequest(group_instance_id="i"), 4, 5),
        (messages.FindCoordinatorRequest(key_type=1), 0, 1),
        (messages.OffsetFetchRequest(require_stable=True), 6, 7),
        (messages.FetchRequest(rack_id="r"), None, 11),
        (messages.TransactionLogValue(client_transaction_version=2), 0, 1),
        (messages.PartitionRecord(eligible_leader_replicas=[1]), 1, 2),
    ],
)
def test_a_set_field_is_never_dropped_unless_kafka_says_it_may_be(
    message: Message, lacks: int | None, has: int
) -> None:
    message.encode(has)
    if lacks is not None:
        with pytest.raises(EncodeError, match="no such field"):
            message.encode(lacks)


def test_an_ignorable_field_is_dropped_silently() -> None:
    request = messages.JoinGroupRequest(group_id="g", rebalance_timeout_ms=5, reason="because")
    assert messages.JoinGroupRequest.decode(request.encode(0), 0) == messages.JoinGroupRequest(group_id="g")


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (messages.HeartbeatRequest(generation_id=1 << 31), 0),
        (messages.HeartbeatRequest(group_id="x" * 0x8000), 0),
        (messages.HeartbeatRequest(group_id="x" * 0x8000), 4),
        (messages.HeartbeatRequest(group_id=None), 0),  # type: ignore[arg-type]
        (messages.HeartbeatRequest(group_id=None), 4),  # type: ignore[arg-type]
        (messages.HeartbeatRequest(group_id="\ud800"), 4),
        (messages.MetadataRequest(topics=None), 0),
        (messages.TopicRecord(name="t", topic_id=b"short"), 0),
        (messages.BrokerHeartbeatRequest(offline_log_dirs=[b"short"]), 1),
        (messages.ProduceRequest(), 2),
    ],
)
def test_what_does_not_fit_is_refused(message: Message, version: int) -> None:
    with pytest.raises(EncodeError):
        message.encode(version)


def test_error_codes_are_plain_integers_on_the_wire() -> None:
    response = messages.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS)
    assert messages.HeartbeatResponse.decode(response.encode(0), 0).error_code == 27


def test_lists_are_new_for_each_message() -> None:
    one, other = messages.MetadataResponse(), messages.MetadataResponse()
    one.topics.append(messages.MetadataResponse.MetadataResponseTopic())
    assert other.topics == []


def test_a_shared_default_struct_cannot_be_changed_by_accident() -> None:
    data = Fetch.PartitionData()
    with pytest.raises(AttributeError, match="assign a new"):
        data.current_leader.leader_id = 5
    data.current_leader = Fetch.LeaderIdAndEpoch(leader_id=5)
    assert Fetch.PartitionData().current_leader == Fetch.LeaderIdAndEpoch()


def test_a_tagged_struct_is_written_only_when_it_differs_from_its_default() -> None:
    plain = fetch_response(b"").encode(12)
    response = fetch_response(b"")
    response.responses[0].partitions[0].current_leader = Fetch.LeaderIdAndEpoch()
    assert response.encode(12) == plain
    response.responses[0].partitions[0].current_leader = Fetch.LeaderIdAndEpoch(3, 4)
    assert (
        messages.FetchResponse.decode(response.encode(12), 12).responses[0].partitions[0].current_leader.leader_id == 3
    )


def test_messages_compare_and_print_by_field() -> None:
    topic = messages.TopicRecord("t", bytes(16))
    assert topic == messages.TopicRecord(name="t", topic_id=bytes(16))
    assert topic != messages.TopicRecord("u", bytes(16))
    assert topic != messages.RemoveTopicRecord(bytes(16))
    assert repr(messages.UnregisterBrokerRecord(1, 2)) == "UnregisterBrokerRecord(broker_id=1, broker_epoch=2)"
    assert repr(Fetch.SnapshotId(1, 2)) == "FetchResponse.SnapshotId(end_offset=1, epoch=2)"


def test_errors_are_value_errors() -> None:
    assert issubclass(DecodeError, ValueError)
    assert issubclass(EncodeError, ValueError)


@pytest.mark.parametrize("size", [0, 126, 127, 128, 16_382, 16_383, 16_384, 2_097_150, 2_097_151, 2_097_152])
def test_records_of_any_size_come_back_around_each_step_of_the_varint(size: int) -> None:
    wire = fetch_response(bytes(size), None).encode(12)
    first, second = messages.FetchResponse.decode(wire, 12).responses[0].partitions
    assert (len(first.records or b""), second.records) == (size, None)
