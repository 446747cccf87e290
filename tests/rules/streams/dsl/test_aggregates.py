"""count, reduce and aggregate of a grouped stream."""

from typing import Any

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized, Produced
from ottla.streams.expressions import aggregates, avg, count, max_, sum_, value
from ottla.streams.serdes import Serdes
from tests.rules.streams.driving import driver_of, feed, results, run


def word_count(builder: StreamsBuilder) -> None:
    words = builder.stream("in").flat_map_values(lambda line: line.split())
    counts = words.group_by(lambda key, word: word).count(Materialized("counts"))
    counts.to_stream().to("out", Produced(Serdes.string, Serdes.long))


def test_word_count_gives_one_update_per_word_with_the_time_of_its_line() -> None:
    inputs = [("in", None, "hello kafka streams", 1), ("in", None, "hello", 2)]
    assert run(word_count, inputs) == [("hello", 1, 1), ("kafka", 1, 1), ("streams", 1, 1), ("hello", 2, 2)]


def test_an_aggregate_has_the_latest_time_of_its_records() -> None:
    inputs = [("in", None, "a", 5), ("in", None, "a", 3), ("in", None, "a", 9)]
    assert run(word_count, inputs) == [("a", 1, 5), ("a", 2, 5), ("a", 3, 9)]


def test_records_without_key_or_value_are_dropped_and_counted() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().reduce(lambda old, new: old + new).to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, [("in", None, "a", 1), ("in", "k", None, 2), ("in", "k", "b", 3), ("in", "k", "c", 4)])
        assert results(driver) == [("k", "b", 3), ("k", "bc", 4)]
        assert driver.dropped_records == {"null-key-or-value": 2}


def test_an_aggregate_that_becomes_none_is_deleted_and_starts_anew() -> None:
    def build(builder: StreamsBuilder) -> None:
        def shortened(key: str, word: str, whole: str) -> str | None:
            return None if word == "end" else whole + word

        kept: Materialized[str, str] = Materialized("kept", Serdes.string, Serdes.string)
        builder.stream("in").group_by_key().aggregate(lambda: "<", shortened, kept).to_stream().to("out")

    with driver_of(build) as driver:
        feed(driver, [("in", "k", "a", 1), ("in", "k", "end", 5), ("in", "k", "b", 2)])
        assert results(driver) == [("k", "<a", 1), ("k", None, 5), ("k", "<b", 2)]
        assert list(driver.get_timestamped_key_value_store("kept").all()) == [("k", ("<b", 2))]


def test_the_changelog_has_the_plain_value_with_the_aggregates_time() -> None:
    with driver_of(word_count) as driver:
        feed(driver, [("in", None, "a", 5), ("in", None, "a", 3)])
        changes = driver.output("app-counts-changelog")
        assert [(raw.key, raw.value, raw.timestamp) for raw in changes] == [
            (b"a", b"\0\0\0\0\0\0\0\1", 5),
            (b"a", b"\0\0\0\0\0\0\0\2", 5),
        ]


def test_a_function_may_change_what_it_is_given_without_changing_the_store() -> None:
    def build(builder: StreamsBuilder) -> None:
        def appended(key: str, word: str, words: list[str]) -> list[str]:
            words.append(word)
            return words if word != "no" else ["reset"]

        kept: Materialized[str, Any] = Materialized("kept", Serdes.string, Serdes.json)
        table = builder.stream("in").group_by_key().aggregate(list, appended, kept)
        table.to_stream().to("out", Produced(Serdes.string, Serdes.json))

    inputs = [("in", "k", "a", 1), ("in", "k", "no", 2), ("in", "k", "b", 3)]
    assert [value for _, value, _ in run(build, inputs)] == [["a"], ["reset"], ["reset", "b"]]


def numbers(builder: StreamsBuilder, fold: Any, kept: Any) -> None:
    numbers = builder.stream("in", Consumed(Serdes.string, Serdes.json("n LONG")))
    grouped = numbers.group_by_key(Grouped(Serdes.string, Serdes.json("n LONG")))
    grouped.aggregate(fold, materialized=Materialized("kept", Serdes.string, kept)).to_stream().to(
        "out", Produced(Serdes.string, kept)
    )


def test_native_aggregates_run_record_by_record_too() -> None:
    def build(builder: StreamsBuilder) -> None:
        fold = aggregates(all=sum_(value["n"]), most=max_(value["n"]), of=count())
        numbers(builder, fold, Serdes.json)

    inputs = [("in", "k", '{"n": 4}', 1), ("in", "k", '{"n": 6}', 2), ("in", "k", "{}", 3)]
    assert [result for _, result, _ in run(build, inputs)] == [
        {"all": 4, "most": 4, "of": 1},
        {"all": 10, "most": 6, "of": 2},
        {"all": 10, "most": 6, "of": 3},
    ]


def test_an_average_keeps_sum_and_count_beside_its_result() -> None:
    def build(builder: StreamsBuilder) -> None:
        numbers(builder, avg(value["n"]), Serdes.double)

    inputs = [("in", "k", '{"n": 4}', 1), ("in", "k", '{"n": 5}', 2), ("in", "k", '{"n": 9}', 3)]
    with driver_of(build) as driver:
        feed(driver, inputs)
        assert [result for _, result, _ in results(driver)] == [4.0, 4.5, 6.0]
        assert driver.get_key_value_store("kept").get("k") == 6.0
        assert "app-kept-fold-changelog" not in driver.produced_topic_names()
