"""Pipelines in front of a cluster that asks who comes, over TLS: each client as its settings say, with the rights that
it needs and no more; no secret where others look."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.client.security import security
from ottla.connect.jobs.query import ConnectorStopped
from ottla.pipelines import exactly_once, read_stream
from ottla.streams import StreamsBuilder
from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.spark.applications import COUNTED, COUNTS, START, Input, World, word_count
from tests.spark.connect.connectors import TEXTS, run, spec_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    with Cluster(security="SASL_SSL") as cluster:
        yield cluster


@pytest.fixture
def within(guarded: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    name = request.node.name.removeprefix("test_")[:20]
    servers = guarded.bootstrap_servers
    with Client(parse_bootstrap(servers), security=security(as_java(guarded.admin))) as client:
        yield World(client, servers, name, tmp_path)


def settings_of(cluster: Cluster, user: str, *may: str) -> dict[str, str]:
    given = as_java(cluster.user(user, may=may))
    return {name: value for name, value in given.items() if name.startswith(("security.", "sasl.", "ssl."))}


def secret_in(settings: dict[str, str]) -> str:
    return settings["sasl.jaas.config"].partition('password="')[2].partition('"')[0]


def shown(spark: "SparkSession") -> str:
    """All that Spark's pages and event logs show of this session."""
    status: Any = spark.sparkContext.statusTracker()
    return spark.sparkContext.getConf().toDebugString() + str(status.getActiveJobsIds())


def nothing_of(secret: str, folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_an_application_with_state(spark: "SparkSession", guarded: Cluster, within: World) -> None:
    lines, out = within.topic("lines"), within.topic("out")
    settings = settings_of(
        guarded,
        "counter",
        f"read topic:{lines}",
        f"write topic:{out}",
        f"all topic:{within.name}-*",
        f"all group:{within.name}*",
        f"all transactional-id:{within.name}-*",
        "idempotent-write cluster",
    )
    within.send([Input(lines, None, text, START) for text in (b"a b", b"b")])
    builder = StreamsBuilder()
    word_count(builder, lines, "", out)
    app = within.app(builder, **settings)
    app.run(once=True)
    assert {key: value[0] for key, value in within.last(out).items()} == {
        b"a": (1).to_bytes(8, "big"),
        b"b": (2).to_bytes(8, "big"),
    }
    secret = secret_in(settings)
    nothing_of(secret, within.directory)
    assert secret not in shown(spark) + repr(app.config)


def test_connectors_with_clients_of_their_own(spark: "SparkSession", guarded: Cluster, within: World) -> None:
    topic = within.topic("lines")
    writer = settings_of(guarded, "writer", "all topic:* group:connect-* transactional-id:connect-tests-* cluster")
    reader = settings_of(guarded, "reader", f"read topic:{topic}", "read group:connect-*", "describe topic:*")
    given, out = within.directory / "in.txt", within.directory / "out.txt"
    given.write_text("one\ntwo\n")
    source = spec_of(within, "source", {**TEXTS, "connector.class": "FileStreamSource", "file": str(given),
                                        "topic": topic})  # fmt: skip
    with pytest.raises(ConnectorStopped, match="does its listener want TLS or a login"):
        run(spark, replace(source, name=f"{source.name}-nobody"))
    run(spark, replace(source, client=writer))
    overrides = {f"consumer.override.{name}": value for name, value in reader.items()}
    sink = spec_of(within, "sink", {**TEXTS, **overrides, "connector.class": "FileStreamSink", "file": str(out),
                                    "topics": topic})  # fmt: skip
    run(spark, replace(sink, client=writer))
    assert out.read_text() == "one\ntwo\n"
    for settings in (writer, reader):
        nothing_of(secret_in(settings), within.directory)
        assert secret_in(settings) not in shown(spark)


def test_queries_of_ones_own(spark: "SparkSession", guarded: Cluster, within: World) -> None:
    topic, out = within.topic("in"), within.topic("out")
    settings = settings_of(guarded, "anybody", "all topic:* transactional-id:* cluster")
    within.send([Input(topic, b"k", b"v", START)])
    kafka = {f"kafka.{name}": value for name, value in settings.items()}
    rows: DataFrame = read_stream(
        spark,
        {"kafka.bootstrap.servers": within.bootstrap, "subscribe": topic, "startingOffsets": "earliest", **kafka},
    )
    secret, plans = secret_in(settings), rows._jdf.queryExecution().toString()
    assert secret not in plans
    write: Any = exactly_once(bootstrap_servers=within.bootstrap, topic=out, client=settings)
    query = (
        rows.select("key", "value")
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(within.directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [(record.key, record.value) for record in within.read(out)] == [(b"k", b"v")]
    nothing_of(secret, within.directory / "checkpoint")


def test_the_table_of_an_application_is_restored(spark: "SparkSession", guarded: Cluster, within: World) -> None:
    """A store with a view of a global table, begun again without its state: the restore and global consumers."""
    names, lines, out = within.topic("names"), within.topic("lines"), within.topic("out")
    settings = settings_of(guarded, "restorer", "all topic:* group:* transactional-id:* cluster")
    within.send([Input(names, b"a", b"Ada", START), Input(lines, b"a", b"x", START + 1)])

    def joined() -> StreamsBuilder:
        from tests.spark.applications import CONSUMED  # noqa: PLC0415

        builder = StreamsBuilder()
        table = builder.global_table(names, CONSUMED)
        (
            builder.stream(lines, CONSUMED)
            .join(table, lambda line, name: f"{line} {name}", key_mapper=lambda key, _: key)
            .group_by_key()
            .count(COUNTS)
            .to_stream()
            .to(out, COUNTED)
        )
        return builder

    within.app(joined(), **settings).run(once=True)
    within.send([Input(lines, b"a", b"y", START + 2)])
    again = World(within.client, within.bootstrap, within.name, within.directory / "elsewhere")
    again.app(joined(), **settings).run(once=True)
    assert within.last(out)[b"a"][0] == (2).to_bytes(8, "big")
