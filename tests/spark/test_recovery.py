"""An application that has lost its state goes on from its changelogs, and a checkpoint that does not fit is refused."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from ottla.cli.app import run
from ottla.client import groups
from ottla.client.blocking.cluster import Cluster as Client
from ottla.model.ids import TopicPartition
from ottla.pipelines.job import CannotStart
from ottla.pipelines.settings import LOCAL_CHECKPOINT
from ottla.streams import StreamsApp, StreamsBuilder
from ottla.streams.dsl.options import Materialized
from ottla.streams.record import Record
from ottla.streams.run.failures import StreamsFailed
from ottla.streams.topology.processor import Processor, ProcessorContext
from ottla.streams.topology.topology import Stores, Topology
from tests.spark.applications import (
    CONSUMED,
    NATIVE,
    PRODUCED,
    SEQUENCES,
    START,
    TASKS,
    TEXT,
    Build,
    Input,
    World,
    driven,
    in_task_order,
    lasts,
    lines_of,
)
from tests.support.disks import mounted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

CHECKPOINT_FILES, CHECKSUMS = LOCAL_CHECKPOINT
SPARKS_OWN_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
RESTORED = {**NATIVE, **TASKS, "join": SEQUENCES["join"]}


def builder_of(world: World, build: Build) -> StreamsBuilder:
    builder = StreamsBuilder()
    build(builder, *(f"{world.name}.{short}" for short in ("lines", "others", "out")))
    return builder


def halves(world: World, *, joined: bool = False) -> tuple[list[Input], list[Input]]:
    lines, others = world.topic("lines"), world.topic("others")
    world.topic("out")
    records = lines_of(23, [lines, others] if joined else [lines], 160)
    return records[:80], records[80:]


def settings(topology: str) -> dict[str, int]:
    """A cache would hold back updates of a task that the test driver shows."""
    return {"max.records.per.batch": 200} | ({} if topology in NATIVE else {"statestore.cache.max.bytes": 0})


def lose(world: World) -> None:
    shutil.rmtree(world.directory / world.name)


class Told:
    """A StateRestoreListener."""

    def __init__(self) -> None:
        self.events: list[tuple[str, TopicPartition, str, int]] = []

    def on_restore_start(self, place: TopicPartition, store: str, start: int, end: int) -> None:
        self.events.append(("start", place, store, end - start))

    def on_batch_restored(self, place: TopicPartition, store: str, _end: int, number: int) -> None:
        self.events.append(("batch", place, store, number))

    def on_restore_end(self, place: TopicPartition, store: str, total: int) -> None:
        self.events.append(("end", place, store, total))


@pytest.mark.parametrize(
    "topology",
    [pytest.param(each, marks=() if each in ("words", "join") else pytest.mark.matrix) for each in RESTORED],
)
def test_a_lost_state_directory_comes_back_from_the_changelogs(world: World, topology: str) -> None:
    first, second = halves(world, joined=topology == "join")
    for half in (first, second):
        world.send(half)
        world.app(builder_of(world, RESTORED[topology]), **settings(topology)).run(once=True)
        lose(world)
    ordered = in_task_order(first) + in_task_order(second)
    expected = lasts(driven(builder_of(world, RESTORED[topology]), ordered, f"{world.name}.out"))
    assert world.last(f"{world.name}.out") == expected


def test_a_checkpoint_is_gone_on_with_whichever_way_its_files_were_written(world: World) -> None:
    """Spark's own way, ours, and Spark's own again, as by a version of before: checksums have to hold for all."""
    theirs = {CHECKPOINT_FILES: SPARKS_OWN_FILES, CHECKSUMS: "true"}
    first, second = halves(world)
    for records, way in ((first, theirs), (second[:40], {}), (second[40:], theirs)):
        world.send(records)
        world.app(builder_of(world, NATIVE["words"]), **settings("words"), **way).run(once=True)
        assert active_way() == way.get(CHECKPOINT_FILES, LOCAL_CHECKPOINT[CHECKPOINT_FILES])
    expected = lasts(driven(builder_of(world, NATIVE["words"]), first + second, f"{world.name}.out"))
    assert world.last(f"{world.name}.out") == expected


class Keeping(Processor):
    """Fills the store that others read."""

    def init(self, context: ProcessorContext) -> None:
        self._rows = context.state_store("rows")

    def process(self, record: Record) -> None:
        self._rows.put(record.key, record.value)


class Looking(Keeping):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._context = context

    def process(self, record: Record) -> None:
        row = self._rows.get(record.key)
        self._context.forward(record.with_value(f"{record.value}/{row}"))


def joined_with_a_table(lines: str, others: str, out: str) -> Topology:
    builder = StreamsBuilder()
    rows = builder.table(others, CONSUMED, Materialized("rows", TEXT, TEXT))
    builder.stream(lines, CONSUMED).left_join(rows, lambda line, row: f"{line}/{row}").to(out, PRODUCED)
    return builder.build()


def beside_a_read_only_store(lines: str, others: str, out: str) -> Topology:
    topology = Topology()
    topology.add_read_only_state_store(Stores.key_value("rows", TEXT, TEXT), "rows-in", others, "keep", Keeping)
    topology.add_source("lines-in", lines, key_serde=TEXT, value_serde=TEXT)
    topology.add_processor("look", Looking, "lines-in", stores=["rows"])
    return topology.add_sink("out", out, "look", key_serde=TEXT, value_serde=TEXT)


@pytest.mark.parametrize("build", [joined_with_a_table, beside_a_read_only_store])
def test_a_lost_store_without_a_changelog_comes_back_from_its_topic(
    world: World, build: Callable[[str, str, str], Topology]
) -> None:
    lines, others, out = (world.topic(short) for short in ("lines", "others", "out"))
    topology = build(lines, others, out)
    config = {"state.dir": str(world.directory), "topology.optimization": "all"}
    app = StreamsApp(world.name, topology, bootstrap_servers=world.bootstrap, **config)
    world.send([Input(others, key, b"row", START) for key in (b"a", b"b")])
    app.run(once=True)
    lose(world)
    world.send([Input(others, b"b", b"new", START + 1), Input(lines, b"a", b"line", START + 2)])
    world.send([Input(lines, b"b", b"line", START + 2)])
    app.run(once=True)
    assert world.last(out) == {b"a": (b"line/row", START + 2), b"b": (b"line/new", START + 2)}


def active_way() -> str | None:
    from pyspark.sql import SparkSession  # noqa: PLC0415  slow

    session = SparkSession.getActiveSession()
    assert session is not None
    return session.conf.get(CHECKPOINT_FILES)


def test_listeners_hear_of_each_changelog_partition_that_is_restored(world: World) -> None:
    first, second = halves(world)
    build = TASKS["sessions"]
    world.send(first)
    world.app(builder_of(world, build)).run(once=True)
    lose(world)
    world.send(second)
    place = TopicPartition(f"{world.name}-counts-changelog", 0)
    records = len(world.read(place.topic))
    app, told = world.app(builder_of(world, build)), Told()
    app.set_global_state_restore_listener(told)
    app.run(once=True)
    starts = [event for event in told.events if event[0] == "start"]
    assert [event[1:3] for event in starts] == [(place, "counts")]
    assert told.events[-1] == ("end", place, "counts", records)
    assert sum(event[3] for event in told.events if event[0] == "batch") == records


def test_a_checkpoint_that_another_instance_has_overtaken_is_set_aside(world: World) -> None:
    first, second = halves(world)
    build = TASKS["sessions"]
    world.send(first)
    world.app(builder_of(world, build), **settings("sessions")).run(once=True)
    # Elsewhere it goes on, from the changelogs, and then here again.
    elsewhere = World(world.client, world.bootstrap, world.name, world.directory / "elsewhere")
    world.send(second[:40])
    elsewhere.app(builder_of(world, build), **settings("sessions")).run(once=True)
    world.send(second[40:])
    world.app(builder_of(world, build), **settings("sessions")).run(once=True)
    expected = lasts(driven(builder_of(world, build), first + second, f"{world.name}.out"))
    assert world.last(f"{world.name}.out") == expected


def test_a_checkpoint_behind_which_the_offsets_were_moved_back_is_refused(world: World, client: Client) -> None:
    first, _ = halves(world)
    app = run_once(world, first)
    place = TopicPartition(f"{world.name}.lines", 0)
    groups.commit(client, world.name, {place: 3})
    with pytest.raises(CannotStart, match=r"is at offset \d+ of .*lines-0, but the group .* is at 3") as refused:
        app.run(once=True)
    assert "ottla streams reset" in str(refused.value)


@pytest.fixture
def by_url(spark: "SparkSession", world: World, tmp_path: Path) -> str:
    """A folder that only Hadoop knows how to reach, as on a cluster. It remembers what it has mounted by the name."""
    (tmp_path / "mounted").mkdir()
    cast("Any", spark)._jsc.hadoopConfiguration().set(
        f"fs.viewfs.mounttable.{world.name}.link./state", f"file://{tmp_path}/mounted"
    )
    return f"viewfs://{world.name}/state"


def test_behind_a_url_a_changed_topology_is_refused_and_an_old_checkpoint_set_aside(world: World, by_url: str) -> None:
    first, second = halves(world)

    def app(topology: str, state_dir: str = by_url) -> StreamsApp:
        built = builder_of(world, TASKS[topology]).build()
        config = {"state.dir": state_dir, **settings(topology)}
        return StreamsApp(world.name, built, bootstrap_servers=world.bootstrap, **config)

    for records in (first[:40], first[40:]):
        world.send(records)
        app("sessions").run(once=True)
    with pytest.raises(CannotStart, match="the store counts was kept by query 0 and is now kept by query 2"):
        app("two-hops").run(once=True)
    # Elsewhere it goes on, from the changelogs, and then here again.
    for records, state_dir in ((second[:40], str(world.directory / "elsewhere")), (second[40:], by_url)):
        world.send(records)
        app("sessions", state_dir).run(once=True)
    expected = lasts(driven(builder_of(world, TASKS["sessions"]), first + second, f"{world.name}.out"))
    assert world.last(f"{world.name}.out") == expected


def test_a_reset_deletes_what_is_behind_a_url(
    world: World, by_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, _ = halves(world)
    world.send(first)
    app = StreamsApp(
        world.name,
        builder_of(world, TASKS["sessions"]).build(),
        bootstrap_servers=world.bootstrap,
        **{"state.dir": by_url, **settings("sessions")},
    )
    app.run(once=True)
    told = world.read(f"{world.name}.out")
    assert (tmp_path / "mounted" / world.name).is_dir()
    monkeypatch.setenv("OTTLA_BOOTSTRAP", world.bootstrap)
    assert run(["streams", "reset", "--application-id", world.name, "--state-dir", by_url, "--execute"]) == 0
    assert not (tmp_path / "mounted" / world.name).exists()
    app.run(once=True)
    twice = [(record.key, record.value) for record in world.read(f"{world.name}.out")]
    assert twice == 2 * [(record.key, record.value) for record in told]


def test_a_full_disk_is_told_and_nothing_is_lost(world: World, tmp_path: Path) -> None:
    """On a larger disk the application goes on, with the state of its changelogs."""
    topic, out = world.topic("lines"), world.topic("out")
    builder = builder_of(world, TASKS["sessions"])
    few = [Input(topic, b"few", b"line", START)]
    dice = random.Random(7)  # nothing that could be compressed to next to nothing
    many = [Input(topic, dice.randbytes(200).hex().encode(), b"line", START) for _ in range(20_000)]
    with mounted(tmp_path / "small", "1m") as disk:
        config = {"state.dir": str(disk), "max.records.per.batch": None}
        app = StreamsApp(world.name, builder.build(), bootstrap_servers=world.bootstrap, **config)
        world.send(few)
        app.run(once=True)
        world.send(many)
        with pytest.raises(StreamsFailed, match=rf"no space is left on the disk of {disk}\S* \(state.dir\)"):
            app.run(once=True)
        assert len(world.read(out)) == 1
    config["state.dir"] = str(tmp_path / "large")
    StreamsApp(world.name, builder.build(), bootstrap_servers=world.bootstrap, **config).run(once=True)
    assert len(world.read(out)) == 20_001


def run_once(world: World, records: list[Input]) -> StreamsApp:
    world.send(records)
    app = world.app(builder_of(world, TASKS["sessions"]))
    app.run(once=True)
    return app
