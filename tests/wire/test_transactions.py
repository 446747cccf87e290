"""Transactions by hand: every answer that a transactional producer can get, in both protocols (KIP-98, KIP-890)."""

import time
from collections.abc import Mapping
from typing import Any

import pytest

from ottla.protocol import messages as m
from ottla.protocol.batch import read_header
from ottla.protocol.codec import Message
from ottla.protocol.frames import RequestHeader, encode_request
from tests.conftest import NewTopicName
from tests.support.requests import batch as plain_batch
from tests.support.requests import (
    batches_in,
    create_topic,
    fetch,
    fetch_partition,
    fetch_request,
    list_offset,
    produced,
)
from tests.support.transactions import TV1, TV2, ByHand
from tests.support.wire import Deadline, Wire

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
ILLEGAL_GENERATION = 22
UNKNOWN_MEMBER_ID = 25
TOPIC_AUTHORIZATION_FAILED = 29
INVALID_REQUEST = 42
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
INVALID_TRANSACTION_TIMEOUT = 50
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
OPERATION_NOT_ATTEMPTED = 55
UNSTABLE_OFFSET_COMMIT = 88
PRODUCER_FENCED = 90
TRANSACTIONAL_ID_NOT_FOUND = 105
TRANSACTION_ABORTABLE = 120

both = pytest.mark.parametrize("versions", [TV1, TV2], ids=["tv1", "tv2"])


@pytest.fixture
def topic(wire: Wire, new_topic_name: NewTopicName) -> str:
    name = new_topic_name()
    create_topic(wire, name, 2)
    return name


@pytest.fixture
def producer(wire: Wire, topic: str) -> ByHand:
    return ByHand(wire, f"{topic}-txn").begin()


def opened(wire: Wire, topic: str, versions: Mapping[int, int], partition: int = 0) -> ByHand:
    """A producer with one record in an open transaction."""
    producer = ByHand(wire, f"{topic}-txn", versions).begin()
    write(producer, topic, partition)
    return producer


def write(producer: ByHand, topic: str, partition: int = 0) -> int:
    """One record, in the manner of the producer's protocol; its offset."""
    if producer.versions is TV1:
        assert set(producer.add((topic, partition)).values()) == {0}
    error, offset = producer.produce(topic, partition)
    assert error == 0
    return offset


def committed(wire: Wire, topic: str, partition: int = 0, offset: int = 0) -> Any:
    return fetch(wire, topic, offset, partition=partition, isolation_level=1, version=12)


def aborted_in(part: Any) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in part.aborted_transactions or []]


# ---- InitProducerId


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_init_producer_id_gives_an_epoch(wire: Wire, topic: str, version: int) -> None:
    producer = ByHand(wire, f"{topic}-txn")
    producer.find()
    error, producer_id, epoch = producer.init(version=version)
    assert (error, epoch) == (0, 0) and producer_id >= 0
    assert producer.init(version=version) == (0, producer_id, 1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_beyond_the_limit_is_refused(wire: Wire, topic: str, timeout_ms: int) -> None:
    producer = ByHand(wire, f"{topic}-txn")
    producer.find()
    assert producer.init(timeout_ms=timeout_ms) == (INVALID_TRANSACTION_TIMEOUT, -1, -1)


def test_an_empty_transactional_id_is_refused(wire: Wire, producer: ByHand) -> None:
    producer.name = ""
    assert producer.init() == (INVALID_REQUEST, -1, -1)


def test_kip_360_who_names_its_epoch_is_recovered_once_and_fenced_if_another_came(producer: ByHand) -> None:
    first = (producer.producer_id, producer.epoch)
    assert producer.init(expected=first) == (0, first[0], 1)
    assert producer.init(expected=first) == (0, first[0], 1)
    assert producer.init() == (0, first[0], 2)
    assert producer.init(expected=first) == (PRODUCER_FENCED, -1, -1)
    assert producer.init(expected=first, version=3) == (INVALID_PRODUCER_EPOCH, -1, -1)
    assert producer.init(expected=(first[0] + 1000, 0)) == (PRODUCER_FENCED, -1, -1)
    assert producer.init(expected=(first[0], -1)) == (INVALID_REQUEST, -1, -1)


@both
def test_a_second_producer_of_the_same_name_aborts_what_the_first_left_open(
    wire: Wire, topic: str, versions: Mapping[int, int]
) -> None:
    old = opened(wire, topic, versions)
    fresh = ByHand(wire, old.name, versions).begin()
    assert (fresh.producer_id, fresh.epoch) == (old.producer_id, 2)
    assert old.produce(topic) == (INVALID_PRODUCER_EPOCH, -1)
    assert old.end(committed=True) == PRODUCER_FENCED
    write(fresh, topic)
    assert fresh.end(committed=True) == 0
    fresh.settle()
    part = committed(wire, topic)
    assert (part.last_stable_offset, aborted_in(part)) == (4, [(old.producer_id, 0)])


# ---- what may be written


def test_a_transactional_batch_needs_a_transactional_id(topic: str, producer: ByHand) -> None:
    error = producer.produce(topic, transactional_id=None)
    assert error == (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)


@pytest.mark.parametrize(
    ("version", "error"), [(9, INVALID_TXN_STATE), (10, INVALID_TXN_STATE), (11, TRANSACTION_ABORTABLE)]
)
def test_tv1_a_partition_that_was_not_added_is_refused(topic: str, producer: ByHand, version: int, error: int) -> None:
    producer.add((topic, 1))
    assert producer.produce(topic, 0, version=version) == (error, -1)
    assert producer.produce(topic, 1, version=version) == (0, 0)


def test_tv2_a_partition_joins_with_its_first_batch(wire: Wire, topic: str) -> None:
    producer = opened(wire, topic, TV2)
    state = producer.describe()
    assert (state.transaction_state, [(t.topic, t.partitions) for t in state.topics]) == ("Ongoing", [(topic, [0])])


def test_tv2_an_unknown_producer_has_to_begin_at_sequence_0(wire: Wire, topic: str) -> None:
    producer = ByHand(wire, f"{topic}-txn", TV2).begin()
    assert producer.produce(topic, sequence=5) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.produce(topic) == (0, 0)


@both
def test_a_batch_sent_twice_is_written_once(wire: Wire, topic: str, versions: Mapping[int, int]) -> None:
    producer = opened(wire, topic, versions)
    assert producer.produce(topic, sequence=0) == (0, 0)
    assert producer.produce(topic, sequence=2) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.end(committed=True) == 0
    producer.settle()
    assert committed(wire, topic).last_stable_offset == 2


def test_strangers_cannot_write_in_a_transaction(wire: Wire, topic: str) -> None:
    producer = opened(wire, topic, TV2)
    other = ByHand(wire, producer.name, TV2)
    other.producer_id, other.epoch = producer.producer_id + 1000, 0
    assert other.produce(topic, 1) == (INVALID_PRODUCER_ID_MAPPING, -1)
    other.producer_id, other.epoch = producer.producer_id, 7
    assert other.produce(topic, 1) == (INVALID_PRODUCER_EPOCH, -1)


@both
def test_a_write_delayed_past_the_end_opens_nothing(wire: Wire, topic: str, versions: Mapping[int, int]) -> None:
    producer = opened(wire, topic, versions)
    late = ByHand(wire, producer.name, versions)
    late.producer_id, late.epoch = producer.producer_id, producer.epoch
    assert producer.end(committed=False) == 0
    producer.settle()
    error, _ = late.produce(topic, sequence=1)
    assert error == (TRANSACTION_ABORTABLE if versions is TV1 else INVALID_PRODUCER_EPOCH)
    assert committed(wire, topic).last_stable_offset == 2


def test_a_plain_batch_inside_an_open_transaction_is_refused(wire: Wire, topic: str) -> None:
    producer = opened(wire, topic, TV2)
    outside = plain_batch(1, producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=1)
    part = m.ProduceRequest.PartitionProduceData(index=0, records=outside)
    data = m.ProduceRequest.TopicProduceData(topic, bytes(16), [part])
    answer = wire.ask(m.ProduceRequest(None, -1, 10_000, [data]), 12)
    assert answer.responses[0].partition_responses[0].error_code == INVALID_TXN_STATE


def test_clients_do_not_write_to_the_topics_of_coordinators(wire: Wire, producer: ByHand) -> None:
    state = "__transaction_state"
    assert producer.add((state, 0)) == {(state, 0): TOPIC_AUTHORIZATION_FAILED}
    data = m.ProduceRequest.TopicProduceData(
        state, bytes(16), [m.ProduceRequest.PartitionProduceData(index=0, records=plain_batch(1))]
    )
    answer = wire.ask(m.ProduceRequest(None, -1, 10_000, [data]), 12)
    assert answer.responses[0].partition_responses[0].error_code == INVALID_TOPIC_EXCEPTION


# ---- AddPartitionsToTxn


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_add_partitions_adds(topic: str, producer: ByHand, version: int) -> None:
    assert producer.add((topic, 0), (topic, 1), version=version) == {(topic, 0): 0, (topic, 1): 0}
    assert producer.add((topic, 0), version=version) == {(topic, 0): 0}
    producer.epoch += 1
    fenced = PRODUCER_FENCED if version >= 2 else INVALID_PRODUCER_EPOCH
    assert producer.add((topic, 0), version=version) == {(topic, 0): fenced}


def test_one_unknown_partition_keeps_the_others_out(topic: str, producer: ByHand) -> None:
    assert producer.add((topic, 0), (topic, 9)) == {
        (topic, 0): OPERATION_NOT_ATTEMPTED,
        (topic, 9): UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_verify_and_add_in_batches(topic: str, producer: ByHand, version: int) -> None:
    place = (topic, 0)
    assert producer.verify(place, version=version) == {place: TRANSACTION_ABORTABLE}
    assert producer.verify(place, version=version, add=True) == {place: 0}
    assert producer.verify(place, version=version) == {place: 0}
    producer.epoch += 1
    assert producer.verify(place, version=version) == {place: PRODUCER_FENCED}
    producer.producer_id += 1000
    assert producer.verify(place, version=version) == {place: INVALID_PRODUCER_ID_MAPPING}


# ---- EndTxn


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commit", [True, False])
def test_every_version_of_end_txn_ends(wire: Wire, topic: str, version: int, commit: bool) -> None:
    producer = opened(wire, topic, TV1)
    first = (producer.producer_id, producer.epoch)
    assert committed(wire, topic).last_stable_offset == 0
    assert producer.end(committed=commit, version=version) == 0
    assert producer.settle().transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
    part = committed(wire, topic)
    assert (part.last_stable_offset, aborted_in(part)) == (2, [] if commit else [(first[0], 0)])
    assert producer.epoch == (1 if version == 5 else 0)
    marker = read_header(batches_in(part.records)[-1])
    assert (marker.is_control, marker.producer_epoch) == (True, producer.epoch)


EMPTY, ABORTED, COMMITTED = "Empty", "CompleteAbort", "CompleteCommit"


@pytest.mark.parametrize(
    ("state", "commit", "retry", "error", "bumps"),
    [
        (EMPTY, False, True, PRODUCER_FENCED, False),
        (EMPTY, False, False, 0, True),
        (EMPTY, True, True, PRODUCER_FENCED, False),
        (EMPTY, True, False, INVALID_TXN_STATE, False),
        (ABORTED, False, True, 0, False),
        (ABORTED, False, False, 0, True),
        (ABORTED, True, False, INVALID_TXN_STATE, False),
        (COMMITTED, False, True, INVALID_TXN_STATE, False),
        (COMMITTED, False, False, 0, True),
        (COMMITTED, True, True, 0, False),
        (COMMITTED, True, False, INVALID_TXN_STATE, False),
    ],
)
def test_tv2_the_table_of_ends(
    wire: Wire, topic: str, state: str, commit: bool, retry: bool, error: int, bumps: bool
) -> None:
    if state == EMPTY:
        producer = ByHand(wire, f"{topic}-txn", TV2).begin()
        producer.begin()
    else:
        producer = opened(wire, topic, TV2)
        assert producer.end(committed=state == COMMITTED) == 0
    assert producer.settle().transaction_state == state
    current = producer.epoch
    producer.epoch -= retry
    assert producer.end(committed=commit) == error
    assert producer.settle().producer_epoch == current + bumps
    assert producer.epoch == (current + bumps if not error else current - retry)


def test_an_end_is_answered_before_its_markers_are_written(wire: Wire, topic: str) -> None:
    """The decision is what counts. Who asks together with the end is not told that it is over; who asks upon the
    answer is."""
    producer = opened(wire, topic, TV2)
    end = m.EndTxnRequest(producer.name, producer.producer_id, producer.epoch, True)
    look = m.DescribeTransactionsRequest(transactional_ids=[producer.name])
    asked: list[tuple[Message, int]] = [(end, TV2[26]), (look, 0)]
    wire.send_bytes(b"".join(encode_request(RequestHeader(each.API_KEY, v, 1, "t"), each) for each, v in asked))
    ended, seen = (wire.receive(each.API_KEY, v) for each, v in asked)
    assert ended.error_code == 0
    assert seen.transaction_states[0].transaction_state == "PrepareCommit"
    assert producer.describe().transaction_state == "CompleteCommit"


def test_tv1_an_end_can_be_repeated_but_not_turned_round(wire: Wire, topic: str) -> None:
    producer = opened(wire, topic, TV1)
    assert producer.end(committed=True) == 0
    producer.settle()
    assert producer.end(committed=True) == 0
    assert producer.end(committed=False) == INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("version", "fenced"), [(1, INVALID_PRODUCER_EPOCH), (4, PRODUCER_FENCED), (5, PRODUCER_FENCED)]
)
def test_strangers_cannot_end_a_transaction(wire: Wire, topic: str, version: int, fenced: int) -> None:
    producer = opened(wire, topic, TV1)
    producer.epoch += 3
    assert producer.end(committed=True, version=version) == fenced
    producer.producer_id += 1000
    assert producer.end(committed=True, version=version) == INVALID_PRODUCER_ID_MAPPING
    producer.name += "-nobody"
    assert producer.end(committed=True, version=version) == INVALID_PRODUCER_ID_MAPPING


# ---- who sees what


@both
def test_committed_readers_stop_at_the_first_open_transaction(
    wire: Wire, topic: str, versions: Mapping[int, int]
) -> None:
    produced(wire, topic, plain_batch(3, start=int(time.time() * 1000)))
    first = opened(wire, topic, versions)
    second = ByHand(wire, f"{topic}-second", versions).begin()
    write(second, topic)
    assert second.end(committed=True) == 0
    second.settle()

    part = committed(wire, topic)
    assert (part.high_watermark, part.last_stable_offset) == (6, 3)
    assert [read_header(one).base_offset for one in batches_in(part.records)] == [0]
    assert list_offset_committed(wire, topic) == 3
    assert list_offset(wire, topic, -1).offset == 6

    assert first.end(committed=False) == 0
    first.settle()
    part = committed(wire, topic)
    assert (part.last_stable_offset, aborted_in(part)) == (7, [(first.producer_id, 3)])
    assert len(batches_in(part.records)) == 5
    assert list_offset_committed(wire, topic) == 7
    assert aborted_in(committed(wire, topic, offset=7)) == []


def list_offset_committed(wire: Wire, topic: str) -> int:
    place = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = m.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1,
        topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[place])],
    )
    return int(wire.ask(request).topics[0].partitions[0].offset)


def test_a_waiting_committed_reader_is_woken_by_the_marker_and_not_by_the_data(
    bootstrap: str, wire: Wire, topic: str
) -> None:
    producer = ByHand(wire, f"{topic}-txn", TV2).begin()
    with Wire(bootstrap) as reader:
        reader.send(
            fetch_request({topic: [fetch_partition(0, 0)]}, max_wait_ms=10_000, min_bytes=1, isolation_level=1), 12
        )
        write(producer, topic)
        write(producer, topic)
        assert producer.end(committed=True) == 0
        part = reader.receive(1, 12).responses[0].partitions[0]
    assert part.last_stable_offset == 3
    assert len(batches_in(part.records)) == 3


# ---- offsets of groups


def offsets(wire: Wire, group: str, topic: str, *, stable: bool) -> tuple[int, int]:
    kind = m.OffsetFetchRequest
    asked = kind.OffsetFetchRequestGroup(
        group_id=group, topics=[kind.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
    (answer,) = wire.ask(kind(groups=[asked], require_stable=stable), 8).groups
    part = answer.topics[0].partitions[0]
    return part.error_code, part.committed_offset


@both
def test_offsets_count_when_the_transaction_commits(wire: Wire, topic: str, versions: Mapping[int, int]) -> None:
    group = f"{topic}-group"
    producer = ByHand(wire, f"{topic}-txn", versions).begin()
    find_group(wire, group)
    for offset, commit, expected in ((5, True, 5), (9, False, 5), (11, True, 11)):
        if versions is TV1:
            assert producer.add_offsets(group) == 0
        assert producer.commit_offsets(group, topic, offset) == 0
        assert offsets(wire, group, topic, stable=True)[0] == UNSTABLE_OFFSET_COMMIT
        assert producer.end(committed=commit) == 0
        producer.settle()
        assert offsets(wire, group, topic, stable=True) == (0, expected)


def find_group(wire: Wire, group: str) -> None:
    deadline = Deadline(f"a coordinator for {group}")
    asked = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    while (found := wire.ask(asked).coordinators[0]).error_code:
        deadline.check(found)


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_txn_offset_commit_commits(wire: Wire, topic: str, version: int) -> None:
    group = f"{topic}-group"
    producer = ByHand(wire, f"{topic}-txn", TV1).begin()
    find_group(wire, group)
    if version < 5:
        assert producer.add_offsets(group, version=min(version, 3)) == 0
    assert producer.commit_offsets(group, topic, 7, version=version or 0) == 0
    assert producer.end(committed=True, version=5 if version == 5 else 3) == 0
    producer.settle()
    assert offsets(wire, group, topic, stable=True) == (0, 7)


def test_kip_447_only_members_commit_for_a_group_that_has_them(wire: Wire, topic: str) -> None:
    group = f"{topic}-group"
    producer = ByHand(wire, f"{topic}-txn", TV2).begin()
    find_group(wire, group)
    assert producer.commit_offsets(group, topic, 7, member="nobody", generation=3) == ILLEGAL_GENERATION
    assert producer.commit_offsets(group, "unknown-topic", 7) == UNKNOWN_TOPIC_OR_PARTITION


def test_tv1_offsets_of_a_group_that_was_not_added_are_refused(wire: Wire, topic: str) -> None:
    group = f"{topic}-group"
    producer = ByHand(wire, f"{topic}-txn", TV1).begin()
    find_group(wire, group)
    producer.add((topic, 0))
    assert producer.commit_offsets(group, topic, 7, version=4) == TRANSACTION_ABORTABLE
    assert producer.commit_offsets(group, topic, 7, version=3) == INVALID_TXN_STATE


# ---- what administrators see and do (KIP-664)


def test_describe_transactions_tells_the_whole_state(wire: Wire, topic: str) -> None:
    producer = opened(wire, topic, TV2)
    write(producer, topic, 1)
    state = producer.describe()
    assert state.transaction_start_time_ms > 0
    state.transaction_start_time_ms = 0
    state.topics[0].partitions.sort()
    assert state == m.DescribeTransactionsResponse.TransactionState(
        transactional_id=producer.name,
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        producer_id=producer.producer_id,
        producer_epoch=0,
        topics=[m.DescribeTransactionsResponse.TopicData(topic, [0, 1])],
    )


@pytest.mark.parametrize(("name", "error"), [("nobody", TRANSACTIONAL_ID_NOT_FOUND), ("", INVALID_REQUEST)])
def test_describe_transactions_of_what_is_not_there(wire: Wire, producer: ByHand, name: str, error: int) -> None:
    producer.name = name
    assert producer.describe() == m.DescribeTransactionsResponse.TransactionState(
        transactional_id=name, error_code=error
    )


def listed(wire: Wire, topic: str, version: int = 2, **filters: Any) -> dict[str, str]:
    answer = wire.ask(m.ListTransactionsRequest(**filters), version)
    assert answer.error_code == 0
    return {
        each.transactional_id.removeprefix(topic): each.transaction_state
        for each in answer.transaction_states
        if each.transactional_id.startswith(topic)
    }


def test_list_transactions_filters(wire: Wire, topic: str) -> None:
    busy = opened(wire, topic, TV2)
    idle = ByHand(wire, f"{topic}-idle").begin()
    assert listed(wire, topic, 0) == {"-txn": "Ongoing", "-idle": "Empty"}
    assert listed(wire, topic, 0, state_filters=["Ongoing"]) == {"-txn": "Ongoing"}
    assert listed(wire, topic, 0, producer_id_filters=[idle.producer_id]) == {"-idle": "Empty"}
    assert listed(wire, topic, 1, state_filters=["Ongoing"], duration_filter=3_600_000) == {}
    assert listed(wire, topic, 1, state_filters=["Ongoing"], duration_filter=-1) == {"-txn": "Ongoing"}
    assert listed(wire, topic, 2, transactional_id_pattern=f"{topic}-i.*") == {"-idle": "Empty"}
    assert listed(wire, topic, 2, transactional_id_pattern="-idle") == {}
    unknown = wire.ask(m.ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"]))
    assert unknown.unknown_state_filters == ["Nonsense"]
    assert busy.end(committed=False) == 0


@pytest.mark.parametrize("version", [1, 2])
def test_write_txn_markers_aborts_a_hanging_transaction(wire: Wire, topic: str, version: int) -> None:
    ByHand(wire, f"{topic}-txn").begin()
    producer = opened(wire, topic, TV1)
    kind = m.WriteTxnMarkersRequest

    def abort(partition: int, coordinator_epoch: int, producer_epoch: int) -> int:
        marker = kind.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[kind.WritableTxnMarkerTopic(topic, [partition])],
            coordinator_epoch=coordinator_epoch,
        )
        (result,) = wire.ask(kind(markers=[marker]), version).markers
        return int(result.topics[0].partitions[0].error_code)

    assert committed(wire, topic).last_stable_offset == 0
    assert abort(9, 0, 1) == UNKNOWN_TOPIC_OR_PARTITION
    assert abort(0, 0, 0) == INVALID_PRODUCER_EPOCH
    assert abort(0, 0, 1) == 0
    part = committed(wire, topic)
    assert (part.last_stable_offset, aborted_in(part)) == (2, [(producer.producer_id, 0)])
