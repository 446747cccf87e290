"""What connectors carry in a second: a topic into a file and a file into a topic (1 KB, beside Java Connect 4.3.1 on
the same broker), PostgreSQL by JDBC (a sink that upserts, beside Debezium's 3.4; a source in bulk), tables (Delta,
Iceberg, Parquet files), and OpenSearch beside a bare loop of `_bulk` requests, of 2,000 documents each.

Ours run one after the other as jobs on Spark (local[2]) in one session, each once before it is measured. All that is to
be carried lies there when a connector begins. The rate is that of the whole, the start of its query counted. Beside
others the rate of either is that behind the first third of it, so no start counts on either side: neither that of
Java's standalone worker (`bench.java_connect`), which is twice measured at most, nor that of our query.
"""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from confluent_kafka import Producer

from bench.context import Context
from bench.java_connect import PATIENCE_SECONDS, counted, rate_of
from bench.java_tools import ToolFailed
from bench.kafka_jars import connect_jars, debezium_jars
from bench.measures import Measure, Metric, Target, ratio_at_least
from bench.postgres import postgres
from bench.servers import Ottla, Server
from bench.streams_runs import Progress, steady

PARTITIONS = 4
SIZE = 1_000
AT_ONCE = 2_000
JAVA_ROUNDS = 2
JSON_CONVERTER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
TEXTS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
PROGRAM = """
import json, sys
from bench.connector_runs import carried, job
from bench.streams_runs import behind_the_start
from ottla.pipelines.session import new_session
bootstrap, rounds, cases = sys.argv[1], int(sys.argv[2]), json.load(open(sys.argv[3]))
spark = new_session("rates", master="local[2]")
def run(key, turn, case):
    config = {name: value.replace("{turn}", str(turn)) for name, value in case["config"].items()}
    seen = carried(spark, job(f"{key}-{turn}", config, bootstrap, case["tasks"]))
    begun, ended, each = seen[0], seen[-1], case["amount"] / case["records"]
    print(key, turn, [(round(at.at - begun.at, 2), at.committed) for at in seen], file=sys.stderr, flush=True)
    assert ended.committed == case["records"], (key, ended)
    beside, _ = behind_the_start(seen, case["records"])
    return {"rate": case["amount"] / (ended.at - begun.at), "cpu": ended.cpu, "beside": beside * each}
taken = {key: [run(key, turn, case) for turn in range(rounds + 1)][1:] for key, case in cases.items()}
print(json.dumps(taken))
"""


class Case(NamedTuple):
    """One connector: what it is measured in, and what it must reach."""

    title: str
    unit: str
    least: float | None
    config: Mapping[str, str]
    records: int
    amount: float
    tasks: int = 1
    beside: float | None = None
    """What it must be of Java's, or of whoever does the same without a connector."""


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    large, rows = context.amount(600_000, 60_000), context.amount(300_000, 30_000)
    given = _Given(context, server, large, rows)
    from tests.platform.systems.opensearch import opensearch  # noqa: PLC0415  for who measures this

    with postgres(server.directory.with_name("postgres")) as (port, _), opensearch() as search:
        _fill_table(port, rows)
        cases = _cases(given, port, search.url)
        bare = [_bare_loop(search.url, turn, given.documents) for turn in range(context.rounds + 1)][1:]
        ours = _ours(context, server.bootstrap, cases)
        others: dict[str, list[float]] = {"search": bare}
        for turn in range(min(JAVA_ROUNDS, context.rounds)):
            for key, rate in (*_java(context, given, turn), _debezium(context, given, port, turn)):
                others.setdefault(key, []).append(rate)
    context.discard(server)
    return [each for key, case in cases.items() for each in _measures(case, others.get(key, []), ours[key])]


def _measures(case: Case, others: list[float], ours: list[dict[str, float]]) -> list[Measure]:
    name = f"connect, {case.title}"
    rates = tuple(each["rate"] for each in ours)
    least = None if case.least is None else Target(case.least, of_ratio=False, at_least=True)
    found = [
        Measure(name, Metric("rate", "rate", case.unit, least), (), rates),
        Measure(name, Metric("cpu", "CPU of one run", "s"), (), tuple(each["cpu"] for each in ours)),
    ]
    if case.beside is not None:
        found.append(
            Measure(
                name,
                Metric("beside", "rate beside others", case.unit, ratio_at_least(case.beside)),
                (*others,),
                tuple(each["beside"] for each in ours),
            )
        )
    return found


# What is carried.


class _Given:
    """Topics and a file, filled."""

    def __init__(self, context: Context, server: Server, large: int, rows: int) -> None:
        self.server = server
        self.large, self.rows = large, rows
        self.directory = context.directory / "rates"
        self.directory.mkdir()
        self.lines = self.directory / "lines.txt"
        line = "x" * (SIZE - 10)
        with self.lines.open("w") as file:
            file.writelines(f"{number:09d}{line}\n" for number in range(large))
        _fill(server, "large", PARTITIONS, (b"%09d%s" % (number, line.encode()) for number in range(large)))
        _fill(server, "rows", PARTITIONS, (_row(number) for number in range(rows)))
        self.many = 2 * rows
        _fill(server, "many", PARTITIONS, (_row(number) for number in range(self.many)))
        self.documents = rows // 3
        for turn in range(context.rounds + 1):  # the topic names the index
            _fill(server, f"documents-{turn}", 1, (_row(number) for number in range(self.documents)))


def _row(number: int) -> bytes:
    return b'{"id":%d,"name":"the name of row %07d","amount":%d.5,"at":%d}' % (number, number, number, number)


def _fill(server: Server, topic: str, partitions: int, values: Any) -> None:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for done in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        done.result(60)
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 20, "batch.size": 1_000_000})
    for number, value in enumerate(values):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    if producer.flush(PATIENCE_SECONDS):
        raise ToolFailed(f"{topic} could not be filled")


def _fill_table(port: int, rows: int) -> None:
    import psycopg  # noqa: PLC0415

    with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres") as database:
        database.execute("CREATE TABLE given (id bigint PRIMARY KEY, name text, amount double precision, at timestamp)")
        database.execute(
            "INSERT INTO given SELECT g, 'the name of row ' || g, g * 1.5, now() FROM generate_series(1, %s) g", (rows,)
        )


def _cases(given: _Given, port: int, search_url: str) -> dict[str, Case]:
    place, large, rows, many = given.directory, given.large, given.rows, given.many
    url = f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=postgres"
    megabytes = large * SIZE / 1e6
    sink = {**JSON_CONVERTER, "topics": "many"}
    into_file = {**TEXTS, "connector.class": "FileStreamSink", "topics": "large", "file": f"{place}/out-{{turn}}"}
    of_file = {**TEXTS, "connector.class": "FileStreamSource", "file": str(given.lines), "topic": "lines-{turn}"}
    upserts = {"connector.class": "jdbc-sink", "connection.url": url, "table.name.format": "taken_{turn}"}
    upserts |= {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id", "auto.create": "true"}
    upserts |= {**JSON_CONVERTER, "topics": "rows"}
    bulk = {**JSON_CONVERTER, "connector.class": "jdbc-source", "connection.url": url, "table.whitelist": "given"}
    bulk |= {"mode": "bulk", "topic.prefix": "bulk-{turn}-", "poll.interval.ms": "86400000"}
    delta = {**sink, "connector.class": "delta-sink", "table.uri": f"{place}/delta-{{turn}}"}
    iceberg = {**sink, "connector.class": "iceberg-sink", "iceberg.tables": "default.rows_{turn}"}
    iceberg |= {"iceberg.catalog.uri": f"sqlite:///{place}/catalog.db", "iceberg.catalog.warehouse": f"file://{place}"}
    parquet = {**sink, "connector.class": "files-sink", "directory": f"{place}/parquet-{{turn}}"}
    parquet |= {"format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat", "flush.size": "100000"}
    search = {**JSON_CONVERTER, "topics": "documents-{turn}", "connector.class": "OpensearchSinkConnector"}
    search |= {"connection.url": search_url, "schema.ignore": "true", "key.ignore": "true", "read.timeout.ms": "60000"}
    return {
        "into_file": Case("topic to file", "MB/s", 80, into_file, large, megabytes, PARTITIONS, beside=1.0),
        "of_file": Case("file to topic", "MB/s", 40, of_file, large, megabytes, beside=1.0),
        "upserts": Case("JDBC upserts into PostgreSQL", "1/s", 30_000, upserts, rows, rows, beside=3.0),
        "bulk": Case("JDBC source in bulk", "1/s", 60_000, bulk, rows, rows),
        "delta": Case("Delta sink", "1/s", 100_000, delta, many, many),
        "iceberg": Case("Iceberg sink", "1/s", 100_000, iceberg, many, many),
        "parquet": Case("Parquet sink", "1/s", 100_000, parquet, many, many),
        "search": Case("OpenSearch sink", "1/s", None, search, given.documents, given.documents, beside=0.8),
    }


# Who carries it.


def _bare_loop(url: str, turn: int, documents: int) -> float:
    """Documents in a second, behind the first third of them."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_SECONDS)
    seen = [Progress(time.perf_counter(), 0, 0.0)]
    for first in range(0, documents, AT_ONCE):
        last = min(first + AT_ONCE, documents)
        body = b"".join(b'{"index":{}}\n' + _row(number) + b"\n" for number in range(first, last))
        connection.request("POST", f"/bare-{turn}/_bulk", body, {"Content-Type": "application/x-ndjson"})
        answer = json.loads(connection.getresponse().read())
        if answer["errors"]:
            raise ToolFailed(f"OpenSearch refuses: {str(answer)[:500]}")
        seen.append(Progress(time.perf_counter(), last, 0.0))
    connection.close()
    return steady(seen, documents)[0]


def _ours(context: Context, bootstrap: str, cases: Mapping[str, Case]) -> dict[str, list[dict[str, float]]]:
    file = context.directory / "cases.json"
    file.write_text(json.dumps({key: case._asdict() for key, case in cases.items()}))
    command = [sys.executable, "-c", PROGRAM, bootstrap, str(context.rounds), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    if done.returncode:
        raise ToolFailed(f"a connector failed: {done.stderr[-3000:]}")
    found: dict[str, list[dict[str, float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _java(context: Context, given: _Given, turn: int) -> Iterator[tuple[str, float]]:
    out, topic = given.directory / f"java-out-{turn}", f"java-lines-{turn}"
    file_sink = {"name": f"java-into-file-{turn}", "connector.class": "FileStreamSink", "topics": "large"}
    file_sink |= {"file": str(out), "tasks.max": str(PARTITIONS)}
    file_source = {"name": f"java-of-file-{turn}", "connector.class": "FileStreamSource"}
    file_source |= {"file": str(given.lines), "topic": topic}

    def in_file() -> float:
        return out.stat().st_size / 1e6 if out.exists() else 0.0

    goal = given.large * SIZE / 1e6
    bootstrap, jars = given.server.bootstrap, connect_jars()
    yield "into_file", rate_of(context, bootstrap, file_sink, jars, in_file, goal)[0]
    with counted(bootstrap, topic) as records:
        yield "of_file", rate_of(context, bootstrap, file_source, jars, lambda: records() * SIZE / 1e6, goal)[0]


def _debezium(context: Context, given: _Given, port: int, turn: int) -> tuple[str, float]:
    """Its sink wants to know the types of what it is given, which it is told beside the topic."""
    import psycopg  # noqa: PLC0415

    fields = {"id": "int64", "name": "string", "amount": "double", "at": "int64"}
    schema = {"type": "struct", "fields": [{"field": name, "type": kind} for name, kind in fields.items()]}
    converter = {**JSON_CONVERTER, "value.converter.schemas.enable": "true"}
    converter["value.converter.schema.content"] = json.dumps(schema)
    config = {**converter, "name": f"debezium-sink-{turn}", "topics": "rows", "insert.mode": "upsert"}
    config |= {"connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "schema.evolution": "basic"}
    config |= {"connection.url": f"jdbc:postgresql://127.0.0.1:{port}/postgres", "connection.username": "postgres"}
    config |= {"connection.password": "none", "primary.key.mode": "record_value", "primary.key.fields": "id"}
    config |= {"collection.name.format": f"debeziums_{turn}", "batch.size": "2000"}
    config |= {"consumer.override.max.poll.records": "2000"}
    with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True) as database:

        def in_table() -> float:
            if database.execute("SELECT to_regclass(%s)", (f"debeziums_{turn}",)).fetchone() == (None,):
                return 0.0
            found = database.execute(f"SELECT count(*) FROM debeziums_{turn}").fetchone()
            assert found is not None
            return float(found[0])

        rate, _ = rate_of(context, given.server.bootstrap, config, debezium_jars(), in_table, given.rows)
    return "upserts", rate
