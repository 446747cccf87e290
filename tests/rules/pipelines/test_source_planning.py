"""What the source decides before it reads: options, offsets of a batch, stream time that is carried over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.model.ids import TopicPartition
from ottla.pipelines.source.batch_size import LEAST, BatchSize
from ottla.pipelines.source.columns import running_maximum
from ottla.pipelines.source.offsets import EARLIEST, LATEST, from_json, share, to_json
from ottla.pipelines.source.options import Position, Topics, matching, parse_options

BASE = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}
T0, T1, T10 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 10)


# Options.


def test_what_is_not_given_has_sparks_defaults() -> None:
    options = parse_options(BASE)
    assert options.topics == Topics(names=("t",))
    assert options.starting is None
    assert options.ending == Position(LATEST)
    assert (options.max_offsets, options.max_bytes, options.stream_time) == (None, None, None)
    assert (options.headers, options.fail_on_data_loss, options.isolation) == (False, True, READ_COMMITTED)


def test_names_of_options_are_matched_whatever_their_case() -> None:
    options = parse_options({"bootstrap.servers": "a:1", "SUBSCRIBE": "t, u,t", "includeheaders": "TRUE"})
    assert options.topics == Topics(names=("t", "u"))
    assert options.headers


@pytest.mark.parametrize(
    ("given", "position"),
    [
        ({"startingOffsets": "earliest"}, Position(EARLIEST)),
        ({"startingOffsets": "latest"}, Position(LATEST)),
        ({"startingOffsets": '{"t": {"0": 5, "10": -2}}'}, Position(exactly={T0: 5, T10: EARLIEST})),
        ({"startingOffsets": "group:g"}, Position(group="g")),
        ({"startingOffsets": "timestamp:7"}, Position(timestamp=7)),
        ({"startingTimestamp": "7"}, Position(timestamp=7, must_exist=True)),
        (
            {"startingTimestamp": "7", "startingOffsetsByTimestampStrategy": "latest", "startingOffsets": "latest"},
            Position(timestamp=7),
        ),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 5}}'}, Position(timestamps={T0: 5}, must_exist=True)),
    ],
)
def test_a_query_begins_where_its_options_say(given: dict[str, str], position: Position) -> None:
    assert parse_options({**BASE, **given}).starting == position


def test_partitions_may_be_assigned_or_found_by_pattern() -> None:
    there = {"bootstrap.servers": "a:1"}
    assert parse_options({**there, "assign": '{"t": [1, 0]}'}).topics == Topics(assigned=(T0, T1))
    assert parse_options({**there, "subscribePattern": "t.*"}).topics == Topics(pattern="t.*")


def test_a_pattern_that_would_backtrack_without_end_does_not() -> None:
    assert matching("(a+)+").fullmatch("a" * 40 + "!") is None
    assert matching("(?!x)(a|b)+").fullmatch("ab") is not None


def test_javas_name_for_the_isolation_level_is_known_and_its_tuning_is_passed_over() -> None:
    options = parse_options({**BASE, "kafka.isolation.level": "read_uncommitted", "kafka.fetch.min.bytes": "1"})
    assert options.isolation == READ_UNCOMMITTED


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"subscribe": ""}, "one of subscribe, assign and subscribePattern has to be set, not none of them"),
        ({"assign": '{"t": [0]}'}, "not subscribe and assign"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is not set"),
        ({"kafka.bootstrap.servers": "a:b"}, "not an address"),
        ({"startingOffsets": "erliest"}, "startingOffsets=erliest: earliest, latest"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "does not tell offsets"),
        ({"startingOffsets": '{"t": [0]}'}, "does not tell offsets"),
        ({"startingOffsets": "group:"}, "names no group"),
        ({"endingOffsets": "earliest"}, "nothing would be read"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger=0: a number above 0"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger=many: a whole number"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss=no: true or false"),
        ({"isolationLevel": "none"}, "isolationLevel=none: read_committed or"),
        ({"minPartitions": "4"}, "minPartitions is not an option of this source: one Spark partition"),
        ({"maxOffsetPerTrigger": "4"}, "is maxOffsetsPerTrigger meant"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "shown in Spark's pages"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_options({**BASE, **given})


# Offsets.


def test_offsets_are_written_in_one_order_for_spark_compares_them_as_text() -> None:
    assert list(to_json({T10: 3, T1: 2, T0: 1})["t"].items()) == [("0", 1), ("1", 2), ("10", 3)]
    assert from_json('{"t":{"10":3,"1":2}}') == {T10: 3, T1: 2}


def test_a_batch_takes_from_each_partition_in_proportion_to_its_backlog() -> None:
    start, latest = {T0: 100, T1: 0}, {T0: 1000, T1: 100, T10: 0}
    assert share(start, latest, 100) == {T0: 190, T1: 10, T10: 0}
    assert share(start, latest, 5000) == latest


def test_no_partition_starves() -> None:
    assert share({T0: 0, T1: 0}, {T0: 1_000_000, T1: 1}, 10) == {T0: 9, T1: 1}


def test_bytes_are_shared_by_what_records_weigh() -> None:
    assert share({}, {T0: 100, T1: 100}, 1500, {T0: 10.0, T1: 20.0}) == {T0: 50, T1: 50}


_places = st.sampled_from([T0, T1, T10])


@given(
    start=st.dictionaries(_places, st.integers(0, 50)),
    more=st.dictionaries(_places, st.integers(0, 1000)),
    most=st.integers(1, 500),
)
def test_a_share_always_advances_and_never_overtakes(
    start: dict[TopicPartition, int], more: dict[TopicPartition, int], most: int
) -> None:
    latest = {place: start.get(place, 0) + count for place, count in more.items()}
    end = share(start, latest, most)
    assert set(end) == set(latest)
    for place, last in latest.items():
        assert min(start.get(place, 0) + 1, last) <= end[place] <= last
    assert sum(end[place] - start.get(place, 0) for place in end) <= most + len(end)


# BatchSize.


def test_a_batch_of_a_backlog_takes_what_is_done_in_the_time_aimed_at() -> None:
    pace = BatchSize(3.0, first=1_000)
    assert pace.next({T0: 0, T1: 0}, 10.0) == 1_000
    assert pace.next({T0: 500, T1: 500}, 60.0) == 1_000  # the first one tells nothing
    assert pace.next({T0: 1_000, T1: 1_000}, 61.0) == 3_000  # 1,000 a second
    assert pace.next({T0: 2_500, T1: 2_500}, 63.0) == 4_500  # 1,500 a second
    assert pace.next({T0: 4_750, T1: 4_750}, 72.0) == 1_500  # 500 a second


def test_a_batch_grows_by_steps_and_is_never_tiny() -> None:
    pace = BatchSize(3.0, first=2_000)
    assert [pace.next({T0: at}, 0.1 * at) for at in (0, 2_000)] == [2_000] * 2
    assert pace.next({T0: 4_000}, 200.1) == 8_000
    assert pace.next({T0: 12_000}, 1_000_000.0) == LEAST


def test_batches_without_a_backlog_tell_nothing_about_the_pace() -> None:
    pace = BatchSize(3.0, first=1_000)
    assert [pace.next({T0: at}, float(at)) for at in (0, 0, 10, 20, 499)] == [1_000] * 5


# Stream time.


def test_stream_time_is_the_largest_timestamp_so_far() -> None:
    assert running_maximum(np.array([3, 1, 7, 2]), 5).tolist() == [5, 5, 7, 7]
    assert running_maximum(np.array([3, 1]), -1).tolist() == [3, 3]
