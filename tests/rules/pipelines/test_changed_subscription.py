"""A stream that goes on with other topics than before: what was read stays read, what is new begins where it says."""

import json
from typing import Any

from ottla.model.ids import TopicPartition
from ottla.pipelines.source.data_source import OttlaStreamReader, Span
from ottla.pipelines.source.options import Topics, parse_options

A0, B0, B1 = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("b", 1)
BASE = {"kafka.bootstrap.servers": "a:1"}


def spans(options: dict[str, str], start: dict[str, Any], end: dict[str, Any]) -> list[tuple[object, ...]]:
    reader = OttlaStreamReader(parse_options({**BASE, **options}))
    found = [each for each in reader.partitions(start, end) if isinstance(each, Span)]
    return [(each.place, each.start, each.end, each.base, each.is_new) for each in found]


def test_a_partition_that_the_checkpoint_does_not_know_begins_where_the_options_say() -> None:
    named = {"subscribe": "a,b", "startingOffsets": json.dumps({"a": {"0": 3}, "b": {"0": 17, "1": -2}})}
    assert spans(named, {"a": {"0": 10}}, {"a": {"0": 12}, "b": {"0": 20, "1": 4}}) == [
        (A0, 10, 12, 17, False),
        (B0, 17, 20, 12, False),
        (B1, 0, 4, 32, True),
    ]


def test_one_of_which_nothing_is_said_is_read_from_wherever_its_log_begins() -> None:
    assert spans({"subscribe": "a"}, {}, {"a": {"0": 4}}) == [(A0, 0, 4, 0, True)]


def test_of_an_unfinished_batch_only_what_is_asked_for_is_read() -> None:
    start, end = {"a": {"0": 1}, "b": {"0": 2}}, {"a": {"0": 3}, "b": {"0": 5}}
    assert spans({"subscribe": "b", "originBase": "1"}, start, end) == [(B0, 2, 5, 1, False)]
    assert spans({"subscribePattern": "b|c"}, start, end) == [(B0, 2, 5, 0, False)]
    assert spans({"assign": '{"b": [0]}'}, start, end) == [(B0, 2, 5, 0, False)]


def test_what_is_asked_for_is_told_by_name_by_pattern_or_by_partition() -> None:
    kinds = (Topics(names=("b",)), Topics(pattern="b|bb"), Topics(assigned=(B0,)))
    assert [[topics.has(place) for place in (A0, B0, B1)] for topics in kinds] == [
        [False, True, True],
        [False, True, True],
        [False, True, False],
    ]


def test_a_pattern_means_the_same_wherever_a_query_goes_by_it() -> None:
    """RE2 takes it and Python's engine does not: the source finds topics by the first."""
    start, end = {"a": {"0": 1}, "b": {"0": 2}}, {"a": {"0": 3}, "b": {"0": 5}}
    assert spans({"subscribePattern": r"\p{L}|b(?i)B"}, start, end) == [(A0, 1, 3, 2, False), (B0, 2, 5, 3, False)]


def test_numbers_of_records_go_on_above_those_of_partitions_that_are_not_read_any_more() -> None:
    both = spans({"subscribe": "a,b"}, {"a": {"0": 50}, "b": {"0": 5}}, {"a": {"0": 60}, "b": {"0": 6}})
    alone = spans({"subscribe": "b", "originBase": "60"}, {"b": {"0": 6}}, {"b": {"0": 7}})
    last_before = max(int(str(base)) + int(str(end)) - 1 for _, _, end, base, _ in both)
    ((_, start, _, base, _),) = alone
    assert int(str(base)) + int(str(start)) > last_before
