"""With a record cache the last update of each key goes out when the task commits, without one every update."""

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.streams import Consumed, Materialized, Produced, Serdes, SessionWindows, StreamsBuilder, Topology
from ottla.streams.record import Raw
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.task import Task

Row = tuple[str, bytes | None, bytes | None, int]


def lines(builder: StreamsBuilder) -> Any:
    return builder.stream("in", Consumed(Serdes.string, Serdes.string))


def batches(topology: Topology, *inputs: Sequence[tuple[str, str | None, int]]) -> list[list[Row]]:
    """What comes out of each batch of (key, value, timestamp), by topic."""
    (sub,) = topology.sub_topologies()
    backends: dict[str, MemoryBackend] = {}
    found = []
    saved = None
    for offset, batch in enumerate(inputs):
        task = Task(sub, topology.graph, "app", 0, lambda name: backends.setdefault(name, MemoryBackend()))
        if saved is not None:
            task.restore(saved)
        raws = [
            Raw("in", 0, 100 * offset + number, key.encode(), None if value is None else value.encode(), time)
            for number, (key, value, time) in enumerate(batch)
        ]
        out = task.process(raws) + task.commit()
        saved = task.save()
        found.append(sorted(((raw.topic, raw.key, raw.value, raw.timestamp) for raw in out), key=lambda row: row[0]))
    return found


def long(number: int) -> bytes:
    return Serdes.long.encode(number)


def counted(*, caching: bool = True) -> Topology:
    builder = StreamsBuilder()
    table = lines(builder).group_by_key().count(Materialized("counts", caching=caching))
    table.to_stream().to("out", Produced(Serdes.string, Serdes.long))
    return builder.build().with_default_serdes()


def test_of_several_updates_of_a_key_the_last_one_goes_out_in_the_order_of_last_updates() -> None:
    batch = [("a", "x", 1), ("b", "x", 2), ("a", "x", 3)]
    assert batches(counted(), batch) == [
        [
            ("app-counts-changelog", b"b", long(1), 2),
            ("app-counts-changelog", b"a", long(2), 3),
            ("out", b"b", long(1), 2),
            ("out", b"a", long(2), 3),
        ]
    ]


@pytest.mark.parametrize("topology", [counted(caching=False), counted().without_caches()])
def test_without_a_cache_every_update_goes_out(topology: Topology) -> None:
    ((*_, first, second),) = batches(topology, [("a", "x", 1), ("a", "x", 3)])
    assert (first, second) == (("out", b"a", long(1), 1), ("out", b"a", long(2), 3))


def test_a_row_that_came_and_went_between_two_commits_is_not_told_of() -> None:
    builder = StreamsBuilder()
    builder.table("in", Consumed(Serdes.string, Serdes.string), "rows").to_stream().to("out")
    topology = builder.build().with_default_serdes(Serdes.string, Serdes.string)
    assert batches(topology, [("a", "x", 1), ("a", None, 2)], [("a", "y", 3)], [("a", None, 4)]) == [
        [],
        [("app-rows-changelog", b"a", b"y", 3), ("out", b"a", b"y", 3)],
        [("app-rows-changelog", b"a", None, 4), ("out", b"a", None, 4)],
    ]


def test_what_is_taken_back_is_the_value_of_the_last_commit() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", Consumed(Serdes.string, Serdes.string), "rows")
    grouped = table.group_by(lambda key, value: ("all", value))
    summed = grouped.aggregate(str, lambda k, v, so_far: f"{so_far}+{v}", lambda k, v, so_far: f"{so_far}-{v}", "sum")
    summed.to_stream().to("out")
    topology = builder.build().with_default_serdes(Serdes.string, Serdes.string)
    feeding = topology.sub_topologies()[0]
    task = Task(feeding, topology.graph, "app", 0, lambda _: MemoryBackend())
    seen = []
    for number, value in enumerate(["1", "2", "3"]):
        seen += task.process([Raw("in", 0, number, b"k", value.encode(), number)])
        if number != 1:
            seen += task.commit(flush=False)
    sent = [raw.value for raw in seen if raw.topic.endswith("-repartition")]
    assert [value is not None and (b"1" in value, b"2" in value, b"3" in value) for value in sent] == [
        (True, False, False),
        (True, False, True),
    ]


def test_a_session_that_grew_within_a_batch_is_taken_back_only_as_it_was_before() -> None:
    builder = StreamsBuilder()
    table = lines(builder).group_by_key().windowed_by(SessionWindows.of(10, grace_ms=0)).count("counts")
    table.to_stream(lambda key, _: f"{key.window.start}-{key.window.end}").to(
        "out", Produced(Serdes.string, Serdes.long)
    )
    topology = builder.build().with_default_serdes()
    found = batches(topology, [("a", "x", 1)], [("a", "x", 5), ("a", "x", 9)])
    assert [[row for row in rows if row[0] == "out"] for rows in found] == [
        [("out", b"1-1", long(1), 1)],
        [("out", b"1-1", None, 1), ("out", b"1-9", long(3), 9)],
    ]
