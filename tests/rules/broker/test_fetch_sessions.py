"""KIP-227: what the broker remembers of a fetch, and when it refuses."""

from ottla.broker.replicas.fetch_sessions import FetchContext, FetchSessions, PartitionKey, SessionPartition
from ottla.model.errors import Errors
from ottla.model.ids import Millis


def asked(*partitions: int, offset: int = 0, topic: str = "t") -> list[SessionPartition]:
    return [SessionPartition(topic, p, fetch_offset=offset, partition_max_bytes=1024) for p in partitions]


def begin(
    sessions: FetchSessions,
    session_id: int,
    epoch: int,
    partitions: list[SessionPartition],
    forgotten: list[PartitionKey] | None = None,
    *,
    new_id: int = 7,
    now: int = 0,
    by_id: bool = False,
) -> FetchContext:
    return sessions.begin(
        session_id,
        epoch,
        partitions,
        forgotten or [],
        uses_topic_ids=by_id,
        privileged=False,
        new_session_id=new_id,
        now=Millis(now),
    )


def names(context: FetchContext) -> list[PartitionKey]:
    return [partition.key for partition in context.partitions]


def test_epoch_zero_opens_a_session_and_answers_in_full() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    context = begin(sessions, 0, 0, asked(0, 1))
    assert (context.error, context.session_id, context.incremental) == (Errors.NONE, 7, False)
    assert names(context) == [("t", 0), ("t", 1)]


def test_epoch_minus_one_ends_the_session_and_answers_without_one() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0))
    context = begin(sessions, 7, -1, asked(0))
    assert (context.session_id, len(sessions)) == (0, 0)


def test_an_incremental_fetch_adds_changes_and_forgets_partitions() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0, 1))
    context = begin(sessions, 7, 1, asked(2) + asked(0, offset=5), forgotten=[("t", 1)])
    assert (context.incremental, names(context)) == (True, [("t", 0), ("t", 2)])
    assert context.partitions[0].fetch_offset == 5


def test_the_epoch_counts_up_by_one_and_anything_else_is_refused() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0))
    assert begin(sessions, 7, 1, []).error == Errors.NONE
    assert begin(sessions, 7, 1, []).error == Errors.INVALID_FETCH_SESSION_EPOCH
    assert begin(sessions, 7, 2, []).error == Errors.NONE


def test_the_epoch_after_the_largest_is_one() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    session = begin(sessions, 0, 0, asked(0)).session
    assert session is not None
    session.epoch = 2**31 - 1
    assert begin(sessions, 7, 2**31 - 1, []).error == Errors.NONE
    assert session.epoch == 1


def test_an_unknown_session_is_refused() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    assert begin(sessions, 99, 1, []).error == Errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_does_not_switch_between_names_and_topic_ids() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0))
    assert begin(sessions, 7, 1, [], by_id=True).error == Errors.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_whose_last_partition_is_forgotten_ends() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0))
    context = begin(sessions, 7, 1, [], forgotten=[("t", 0)])
    assert (context.error, context.session_id, len(sessions)) == (Errors.NONE, 0, 0)


def test_when_all_slots_are_taken_a_fetch_goes_on_without_a_session() -> None:
    sessions = FetchSessions(slots=1, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0, 1), new_id=1)
    context = begin(sessions, 0, 0, asked(0), new_id=2, now=500)
    assert (context.error, context.session_id, names(context)) == (Errors.NONE, 0, [("t", 0)])


def test_a_session_unused_for_the_eviction_time_gives_up_its_slot() -> None:
    sessions = FetchSessions(slots=1, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0, 1), new_id=1)
    assert begin(sessions, 0, 0, asked(0), new_id=2, now=1001).session_id == 2
    assert begin(sessions, 1, 1, []).error == Errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_larger_session_takes_the_slot_of_a_smaller_one_that_had_its_time() -> None:
    sessions = FetchSessions(slots=1, eviction_ms=Millis(1000))
    begin(sessions, 0, 0, asked(0), new_id=1)
    begin(sessions, 1, 1, [], now=900)  # used just now, so not stale
    assert begin(sessions, 0, 0, asked(0, 1), new_id=2, now=1500).session_id == 2


def test_a_partition_is_news_when_its_high_watermark_or_log_start_changed() -> None:
    partition = asked(0)[0]
    assert partition.told(10, 0) is True
    assert partition.told(10, 0) is False
    assert partition.told(11, 0) is True
    assert partition.told(11, 3) is True
