"""A new version of an application may read other topics: what was read stays read, and nothing is left out."""

from collections import Counter

import pytest

from ottla.client import admin, groups
from ottla.client.blocking.cluster import Cluster as Client
from ottla.model.ids import TopicPartition
from ottla.streams import StreamsApp, StreamsBuilder
from ottla.streams.dsl.options import Materialized
from ottla.streams.plan.plan import Mode
from tests.spark.applications import CONSUMED, COUNTED, GROUPED, LONG, PRODUCED, START, TEXT, Input, World

pytestmark = pytest.mark.usefixtures("spark")


def lines(topic: str, *values: str, key: bytes = b"key") -> list[Input]:
    return [Input(topic, key, each.encode(), START + at, (("of", each.encode()),)) for at, each in enumerate(values)]


def passing(world: World, *routes: tuple[list[str], str], **config: str) -> StreamsApp:
    """Each route is a query without state."""
    builder = StreamsBuilder()
    for inputs, out in routes:
        builder.stream(inputs, CONSUMED).to(out, PRODUCED)
    return world.app(builder, **config)


def test_queries_without_state_may_read_other_topics_and_have_other_numbers(world: World, client: Client) -> None:
    a, b, cut, late, out, more = (world.topic(short) for short in ("a", "b", "cut", "late", "out", "more"))
    world.send([*lines(a, "a1", "a2"), *lines(b, "b1", "b2", "b3"), *lines(cut, "c1", "c2"), *lines(late, "l1")])
    admin.delete_records(client, {TopicPartition(cut, 0): 1})
    passing(world, ([a, b], out)).run(once=True)
    # The query gets another topic in front of it, loses one, and is given one of which the group has something.
    groups.commit(client, world.name, {TopicPartition(late, 0): 1})
    world.send([*lines(a, "a3"), *lines(b, "b4"), *lines(late, "l2")])
    passing(world, ([cut], more), ([a, late], out)).run(once=True)
    assert values(world, more) == Counter(["c2"])
    assert values(world, out) == Counter(["a1", "a2", "a3", "b1", "b2", "b3", "l2"])
    # All of them in one again, and of a topic without offsets what comes from now on.
    new = world.topic("new")
    world.send([*lines(new, "n1"), *lines(a, "a4")])
    app = passing(world, ([a, b, cut, late, new], out), **{"auto.offset.reset": "latest"})
    app.run(once=True)
    world.send(lines(new, "n2"))
    app.run(once=True)
    assert values(world, out) == Counter(["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4", "l2", "n2"])


def values(world: World, topic: str) -> Counter[str]:
    return Counter((record.value or b"").decode() for record in world.read(topic))


@pytest.mark.parametrize("mode", [Mode.NATIVE, Mode.TASK])
def test_state_stays_when_inputs_come_and_go(world: World, client: Client, mode: Mode) -> None:
    a, b, out = (world.topic(short) for short in ("a", "b", "out"))

    def counts(*topics: str) -> dict[bytes | None, int]:
        """After a run of a version that reads these topics."""
        builder = StreamsBuilder()
        kept: Materialized[str, int] = Materialized("counts", TEXT, LONG, caching=mode is Mode.NATIVE)
        builder.stream(topics, CONSUMED).group_by_key(GROUPED).count(kept).to_stream().to(out, COUNTED)
        app = world.app(builder)
        app.run(once=True)
        return {key: int.from_bytes(value or b"", "big") for key, (value, _) in world.last(out).items()}

    world.send([*lines(a, "1", "2", "3", key=b"a"), *lines(b, "1", "2", "3", "4", key=b"b")])
    assert counts(a) == {b"a": 3}
    groups.commit(client, world.name, {TopicPartition(b, 0): 3})
    world.send(lines(a, "4", key=b"a"))
    assert counts(a, b) == {b"a": 4, b"b": 1}
    world.send([*lines(a, "5", key=b"a"), *lines(b, "5", key=b"b")])
    assert counts(b) == {b"a": 4, b"b": 2}
    last = world.read(out)[-1]
    assert (last.key, dict(last.headers)) == (b"b", {"of": b"5"})
    assert counts(b) == {b"a": 4, b"b": 2}
    assert counts(a, b) == {b"a": 5, b"b": 2}
