"""Fetch: what comes back, how much, when, and the sessions of KIP-227."""

import gc
import threading
import time
from typing import Any

import pytest

from ottla.broker.handlers import k01_fetch
from ottla.protocol import messages as m
from tests.support.patience import PATIENCE_SECONDS
from tests.support.requests import (
    NAMED_FETCH,
    batch,
    batches_in,
    create_topic,
    delete_records,
    delete_topic,
    fetch,
    fetch_partition,
    fetch_request,
    produced,
    records_in,
)
from tests.support.wire import Wire, latest, versions

TOO_LONG_MS = 2 * int(PATIENCE_SECONDS) * 1000
"""Who waits so long for a fetch does not get its answer: the test gives up before."""

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
UNKNOWN_TOPIC_ID = 100
FETCH_SESSION_TOPIC_ID_ERROR = 106


def offsets(part: Any) -> list[int]:
    return [record.offset for record in records_in(part.records)]


def test_every_version_returns_the_records(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    produced(wire, topic, batch(4))
    for version in versions(1):
        part = fetch(wire, topic if version <= NAMED_FETCH else topic_id, version=version)

        assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, 4, 4)
        assert part.log_start_offset == (0 if version >= 5 else -1)
        assert part.preferred_read_replica == -1
        assert offsets(part) == [0, 1, 2, 3]


def test_every_version_reports_an_offset_out_of_range(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    produced(wire, topic, batch(4))
    for version in versions(1):
        for offset in (5, -1):
            part = fetch(wire, topic if version <= NAMED_FETCH else topic_id, offset, version=version)

            assert (part.error_code, part.high_watermark, part.last_stable_offset) == (OFFSET_OUT_OF_RANGE, -1, -1)
            assert not part.records


def test_the_end_of_the_log_is_an_offset_like_any_other(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    assert (fetch(wire, topic, 0).error_code, offsets(fetch(wire, topic, 0))) == (0, [])
    produced(wire, topic, batch(2))

    part = fetch(wire, topic, 2)

    assert (part.error_code, part.high_watermark, offsets(part)) == (0, 2, [])


def test_unknown_topics_and_partitions_are_told_apart_by_partition(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    assert fetch(wire, topic, partition=1).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(wire, topic + "-not").error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(wire, bytes(range(16))).error_code == UNKNOWN_TOPIC_ID


def test_an_offset_inside_of_a_batch_returns_the_whole_batch(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    for _ in range(3):
        produced(wire, topic, batch(5))

    assert offsets(fetch(wire, topic, 7)) == list(range(5, 15))


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_come_back_compressed(wire: Wire, topic: str, codec: int) -> None:
    create_topic(wire, topic)
    sent = batch(30, codec=codec)
    produced(wire, topic, sent)

    (stored,) = batches_in(fetch(wire, topic, 17).records)

    assert stored[16:] == sent[16:]


@pytest.mark.parametrize("limits", [{"max_bytes": 1}, {"max_bytes": 0}])
def test_kip_74_the_first_batch_comes_even_if_it_is_larger_than_asked(
    wire: Wire, topic: str, limits: dict[str, int]
) -> None:
    topic_id = create_topic(wire, topic)
    produced(wire, topic, batch(50))
    produced(wire, topic, batch(50))

    by_partition = fetch(wire, topic_id, **limits)
    request = fetch_request({topic_id: [fetch_partition(0)]}, **limits)
    by_request = wire.ask(request).responses[0].partitions[0]

    assert offsets(by_partition) == list(range(50))
    assert offsets(by_request) == list(range(50))


def test_a_partition_is_cut_at_its_own_limit(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    for _ in range(10):
        produced(wire, topic, batch(1))
    size = len(batch(1))

    part = fetch(wire, topic, max_bytes=3 * size + 5)

    # Kafka sends the bytes up to the limit, half a batch at the end included; clients drop it.
    assert len(part.records) <= 3 * size + 5
    assert len(batches_in(part.records)) == 3


def test_a_full_answer_names_every_partition_even_when_the_space_is_used_up(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, partitions=3)
    for partition in range(3):
        produced(wire, topic, batch(20), partition=partition)

    request = fetch_request({topic: [fetch_partition(i) for i in range(3)]}, max_bytes=1)
    parts = wire.ask(request, NAMED_FETCH).responses[0].partitions

    assert [(part.partition_index, part.error_code, len(offsets(part))) for part in parts] == [
        (0, 0, 20),
        (1, 0, 0),
        (2, 0, 0),
    ]


def test_a_fetch_waits_for_max_wait_when_there_is_nothing(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    began = time.monotonic()

    part = fetch(wire, topic, max_wait_ms=300, min_bytes=1)

    assert offsets(part) == []
    assert time.monotonic() - began >= 0.29


def test_a_fetch_that_waits_is_answered_as_soon_as_there_is_enough(wire: Wire, bootstrap: str, topic: str) -> None:
    create_topic(wire, topic)
    size = len(batch(1))
    wire.send(fetch_request({topic: [fetch_partition()]}, max_wait_ms=TOO_LONG_MS, min_bytes=2 * size), NAMED_FETCH)

    with Wire(bootstrap) as other:
        produced(other, topic, batch(1))
        produced(other, topic, batch(1))
    part = wire.receive(1, NAMED_FETCH).responses[0].partitions[0]

    assert offsets(part) == [0, 1]


def test_a_fetch_that_waits_for_more_than_comes_gets_what_there_is_at_the_end(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    produced(wire, topic, batch(1))
    began = time.monotonic()

    part = fetch(wire, topic, max_wait_ms=300, min_bytes=1_000_000)

    assert offsets(part) == [0]
    assert time.monotonic() - began >= 0.29


def test_nobody_waits_for_more_than_may_be_sent(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    produced(wire, topic, batch(1))

    request = fetch_request({topic: [fetch_partition()]}, max_wait_ms=TOO_LONG_MS, min_bytes=1_000_000, max_bytes=1)
    part = wire.ask(request, NAMED_FETCH).responses[0].partitions[0]

    assert offsets(part) == [0]


def test_an_error_is_not_waited_with(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    assert fetch(wire, topic, 99, max_wait_ms=TOO_LONG_MS, min_bytes=1).error_code == OFFSET_OUT_OF_RANGE
    assert (
        fetch(wire, topic, 0, partition=9, max_wait_ms=TOO_LONG_MS, min_bytes=1).error_code
        == UNKNOWN_TOPIC_OR_PARTITION
    )


def test_many_waiting_fetches_are_all_woken(wire: Wire, bootstrap: str, topic: str) -> None:
    create_topic(wire, topic)
    seen: list[list[int]] = []

    def wait() -> None:
        with Wire(bootstrap) as own:
            seen.append(offsets(fetch(own, topic, max_wait_ms=TOO_LONG_MS, min_bytes=1)))

    waiting = [threading.Thread(target=wait) for _ in range(10)]
    for thread in waiting:
        thread.start()
    produced(wire, topic, batch(1))
    for thread in waiting:
        thread.join(60)

    assert seen == [[0]] * 10


def test_fetches_that_waited_leave_nothing_to_the_garbage_collector(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    gc.collect()
    gc.disable()
    try:
        before = parked_fetches()
        for _ in range(200):
            assert offsets(fetch(wire, topic, max_wait_ms=1, min_bytes=1)) == []
        after = parked_fetches()
    finally:
        gc.enable()
    assert after - before < 100


def parked_fetches() -> int:
    """The node runs in this process: what it has not let go of is seen here. Others' fetches may be among them."""
    return sum(isinstance(one, k01_fetch.Parked) for one in gc.get_objects())


def test_deleted_records_are_not_served(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    for _ in range(4):
        produced(wire, topic, batch(5))

    assert delete_records(wire, topic, 7).low_watermark == 7

    part = fetch(wire, topic, 7)
    assert (part.error_code, part.log_start_offset, part.high_watermark) == (0, 7, 20)
    assert offsets(part) == list(range(5, 20))  # the batch comes whole
    assert fetch(wire, topic, 6).error_code == OFFSET_OUT_OF_RANGE


def test_delete_records_answers_at_every_version(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    produced(wire, topic, batch(20))
    for version in versions(21):
        part = delete_records(wire, topic, version + 3, version=version)
        assert (part.partition_index, part.error_code, part.low_watermark) == (0, 0, version + 3)

    assert delete_records(wire, topic, 1).low_watermark == 5  # already gone: nothing to do
    assert delete_records(wire, topic, -1).low_watermark == 20  # all there is
    for offset in (-2, 21):
        part = delete_records(wire, topic, offset)
        assert (part.error_code, part.low_watermark) == (OFFSET_OUT_OF_RANGE, -1)
    assert delete_records(wire, topic, 0, partition=4).error_code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("policy", ["compact"])
def test_a_compacted_topic_lets_no_records_be_deleted(wire: Wire, topic: str, policy: str) -> None:
    create_topic(wire, topic, configs={"cleanup.policy": policy})
    produced(wire, topic, batch(3))

    assert delete_records(wire, topic, 1).error_code == 44  # POLICY_VIOLATION


def test_the_leader_epoch_a_consumer_believes_in_is_checked(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    produced(wire, topic, batch(1))

    def ask(epoch: int) -> Any:
        request = fetch_request({topic: [fetch_partition(leader_epoch=epoch)]})
        return wire.ask(request, NAMED_FETCH).responses[0].partitions[0]

    assert ask(0).error_code == 0
    assert ask(-1).error_code == 0
    assert ask(5).error_code == UNKNOWN_LEADER_EPOCH


def test_a_recreated_topic_is_another_topic(wire: Wire, topic: str) -> None:
    old = create_topic(wire, topic)
    produced(wire, topic, batch(3))
    delete_topic(wire, topic)
    new = create_topic(wire, topic)

    assert fetch(wire, old).error_code == UNKNOWN_TOPIC_ID
    part = fetch(wire, new)
    assert (part.error_code, part.high_watermark, offsets(part)) == (0, 0, [])


def test_read_committed_sees_plain_records(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    produced(wire, topic, batch(3))

    part = fetch(wire, topic, isolation_level=1)

    assert offsets(part) == [0, 1, 2]
    assert part.last_stable_offset == 3
    assert not part.aborted_transactions


# Sessions: the server remembers what a client fetches, and both then speak of changes only.


class Session:
    """A fetch session over topic ids."""

    def __init__(self, wire: Wire, version: int = latest(1)) -> None:
        self._wire = wire
        self._version = version
        self.id = 0
        self.epoch = 0

    def ask(
        self,
        topics: dict[str | bytes, list[m.FetchRequest.FetchPartition]],
        forgotten: dict[str | bytes, list[int]] | None = None,
        **options: Any,
    ) -> Any:
        request = fetch_request(topics, session_id=self.id, session_epoch=self.epoch, **options)
        request.forgotten_topics_data = [
            m.FetchRequest.ForgottenTopic(
                topic=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else bytes(16),
                partitions=partitions,
            )
            for topic, partitions in (forgotten or {}).items()
        ]
        answer = self._wire.ask(request, self._version)
        if answer.error_code == 0:
            self.id = answer.session_id
            self.epoch += 1
        return answer


def answered(response: Any) -> dict[int, list[int]]:
    """Offsets per partition, of one topic."""
    return {part.partition_index: offsets(part) for topic in response.responses for part in topic.partitions}


def test_a_session_starts_full_and_then_tells_only_what_is_new(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic, partitions=3)
    produced(wire, topic, batch(2), partition=1)
    session = Session(wire)

    first = session.ask({topic_id: [fetch_partition(i) for i in range(3)]})
    assert first.session_id > 0
    assert answered(first) == {0: [], 1: [0, 1], 2: []}

    assert answered(session.ask({topic_id: [fetch_partition(1, 2)]})) == {}
    produced(wire, topic, batch(1), partition=2)
    assert answered(session.ask({})) == {2: [0]}
    # Not asked to go on from there, the session still stands where it stood.
    assert answered(session.ask({})) == {2: [0]}
    assert answered(session.ask({topic_id: [fetch_partition(2, 1)]})) == {}


def test_a_partition_can_be_forgotten_and_added(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic, partitions=2)
    session = Session(wire)
    session.ask({topic_id: [fetch_partition(0)]})
    for partition in range(2):
        produced(wire, topic, batch(1), partition=partition)

    assert answered(session.ask({topic_id: [fetch_partition(1)]}, forgotten={topic_id: [0]})) == {1: [0]}
    assert answered(session.ask({topic_id: [fetch_partition(0)]})) == {0: [0], 1: [0]}


def test_a_session_also_works_with_names(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, partitions=2)
    session = Session(wire, NAMED_FETCH)
    assert answered(session.ask({topic: [fetch_partition(0), fetch_partition(1)]})) == {0: [], 1: []}

    produced(wire, topic, batch(3), partition=1)

    assert answered(session.ask({})) == {1: [0, 1, 2]}


def test_a_waiting_incremental_fetch_is_woken_by_any_partition_of_its_session(
    wire: Wire, bootstrap: str, topic: str
) -> None:
    topic_id = create_topic(wire, topic, partitions=5)
    session = Session(wire)
    session.ask({topic_id: [fetch_partition(i) for i in range(5)]})
    request = fetch_request({}, session_id=session.id, session_epoch=1, max_wait_ms=TOO_LONG_MS, min_bytes=1)
    wire.send(request)

    with Wire(bootstrap) as other:
        produced(other, topic, batch(1), partition=3)

    assert answered(wire.receive(1)) == {3: [0]}


def test_the_wrong_epoch_of_a_session_is_refused_and_the_right_one_still_works(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    session = Session(wire)
    session.ask({topic_id: [fetch_partition()]})

    session.epoch = 7
    answer = session.ask({})
    assert (answer.error_code, answer.responses) == (INVALID_FETCH_SESSION_EPOCH, [])

    session.epoch = 1
    assert session.ask({}).error_code == 0


def test_an_unknown_session_is_not_found(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    session = Session(wire)
    session.id, session.epoch = 123_456_789, 3

    answer = session.ask({topic_id: [fetch_partition()]})

    assert (answer.error_code, answer.session_id, answer.responses) == (FETCH_SESSION_ID_NOT_FOUND, 0, [])


def test_a_session_is_closed_by_its_final_epoch(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    session = Session(wire)
    session.ask({topic_id: [fetch_partition()]})
    old = session.id

    session.epoch = -1
    final = session.ask({topic_id: [fetch_partition()]})
    assert (final.error_code, final.session_id) == (0, 0)

    session.id, session.epoch = old, 1
    assert session.ask({}).error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_session_can_not_change_from_ids_to_names(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    session = Session(wire)
    session.ask({topic_id: [fetch_partition()]})

    request = fetch_request({topic: [fetch_partition()]}, session_id=session.id, session_epoch=1)

    assert wire.ask(request, NAMED_FETCH).error_code == FETCH_SESSION_TOPIC_ID_ERROR


def test_an_unknown_id_in_a_session_is_an_error_of_its_partition_and_resolves_itself(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    session = Session(wire)

    answer = session.ask({topic_id: [fetch_partition()], bytes(range(16)): [fetch_partition()]})

    errors = {t.topic_id: t.partitions[0].error_code for t in answer.responses}
    assert errors == {topic_id: 0, bytes(range(16)): UNKNOWN_TOPIC_ID}


def test_no_session_is_made_when_none_is_wanted(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)

    assert wire.ask(fetch_request({topic_id: [fetch_partition()]})).session_id == 0  # epoch -1


def test_many_sessions_live_side_by_side(wire: Wire, bootstrap: str, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    sessions = [Session(wire) for _ in range(50)]
    for session in sessions:
        session.ask({topic_id: [fetch_partition()]})
    assert len({session.id for session in sessions}) == 50

    produced(wire, topic, batch(1))

    assert [answered(session.ask({})) for session in sessions] == [{0: [0]}] * 50
