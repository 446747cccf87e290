"""Changes of PostgreSQL into a topic: 200,000 inserts of four columns, 100 in a transaction, JSON without schemas.

The connector runs as a job on Spark (local[2]) in a session that has run it before; server, broker and connector share
the machine. The rows lie in the server's log when it begins. The rate is that of the whole, the start of its query
counted. Debezium 3.4 reads as many rows of the same server in a standalone worker (`bench.java_connect`); beside it the
rate of either is that behind the first third, so no start counts on either side. CPU is that of the connector's
processes (Spark's JVM and its Python workers, or Java), behind the first third too, and of the database's.
"""

import json
import subprocess
import sys
from typing import Any

from bench.context import Context
from bench.java_connect import counted, rate_of
from bench.java_tools import ToolFailed
from bench.kafka_jars import debezium_jars
from bench.measures import Measure, Metric, Target, Trial, measures, ratio_at_least
from bench.postgres import postgres
from bench.servers import Ottla

METRICS = (
    Metric("rate", "rows per second", "1/s", Target(25_000, of_ratio=False, at_least=True)),
    Metric("beside", "rate beside Debezium's", "1/s", ratio_at_least(1.5)),
    Metric("connector", "connector's CPU by row", "µs"),
    Metric("database", "database's CPU by row", "µs"),
)
PATIENCE_SECONDS = 900.0
DEBEZIUM_ROUNDS = 2
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
PROGRAM = """
import json, sys, threading
import psycopg
from bench.connector_runs import carried, job
from bench.process_cost import Meter
from bench.streams_runs import behind_the_start
from bench.workloads.connect_cdc import JSON_CONVERTER, insert
from ottla.pipelines.session import new_session
bootstrap, port, pid, rows, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
config = {
    "connector.class": "postgres-cdc", "database.hostname": "127.0.0.1", "database.port": port,
    "database.dbname": "postgres", "topic.prefix": "bench", "slot.name": "bench", "snapshot.mode": "no_data",
    "key.converter": JSON_CONVERTER, "value.converter": JSON_CONVERTER,
    "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false",
}
database = psycopg.connect(host="127.0.0.1", port=int(port), user="postgres", dbname="postgres", autocommit=True)
database.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text, amount double precision, at timestamp)")
spark, spec, meter = new_session("cdc", master="local[2]"), job("cdc", config, bootstrap), Meter(pid)
ended = threading.Event()
def watch():
    while not ended.wait(0.1):
        meter.total()
threading.Thread(target=watch, daemon=True).start()
carried(spark, spec)
trials = []
for turn in range(rounds + 1):
    insert(database, turn * rows, rows)
    before = meter.total()
    seen = carried(spark, spec)
    print(turn, [(round(at.at - seen[0].at, 2), at.committed) for at in seen], file=sys.stderr, flush=True)
    assert seen[-1].committed == rows, seen
    beside, cpu = behind_the_start(seen, rows)
    rate, used = rows / (seen[-1].at - seen[0].at), (meter.total() - before) / rows * 1e6
    trials.append({"rate": rate, "beside": beside, "connector": cpu, "database": used})
print(json.dumps(trials[1:]))
ended.set()
"""


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    rows = context.amount(200_000, 20_000)
    with postgres(server.directory.with_name("postgres-changes")) as (port, pid):
        taken = _read(server.bootstrap, port, pid, rows, context.rounds)
        turns = range(min(DEBEZIUM_ROUNDS, context.rounds))
        first = (context.rounds + 1) * rows
        beside = [_debezium(context, server.bootstrap, port, rows, first + turn * rows, turn) for turn in turns]
    context.discard(server)
    return measures("connect, PostgreSQL changes", METRICS, (beside, taken))


def insert(database: Any, first: int, rows: int) -> None:
    with database.cursor() as cursor:
        for number in range(first, first + rows, 100):
            cursor.execute(
                "INSERT INTO t SELECT %s + g, 'the name of row ' || g, g * 1.5, now() FROM generate_series(0, 99) g",
                (number,),
            )


def _debezium(context: Context, bootstrap: str, port: int, rows: int, first: int, turn: int) -> Trial:
    import psycopg  # noqa: PLC0415  for who measures this

    name = f"debezium{turn}"
    with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True) as database:
        database.execute(f"CREATE PUBLICATION {name} FOR TABLE t")
        database.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
        insert(database, first, rows)
    config = {
        "name": name, "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput", "database.hostname": "127.0.0.1", "database.port": str(port),
        "database.dbname": "postgres", "database.user": "postgres", "database.password": "none",
        "topic.prefix": name, "slot.name": name, "publication.name": name,
        "snapshot.mode": "no_data", "key.converter": JSON_CONVERTER, "value.converter": JSON_CONVERTER,
        "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false",
    }  # fmt: skip
    with counted(bootstrap, f"{name}.public.t") as records:
        rate, cpu = rate_of(context, bootstrap, config, debezium_jars(), records, rows)
    return {"beside": rate, "connector": cpu}


def _read(bootstrap: str, port: int, pid: int, rows: int, rounds: int) -> list[Trial]:
    command = [sys.executable, "-c", PROGRAM, bootstrap, str(port), str(pid), str(rows), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    if done.returncode:
        raise ToolFailed(f"the connector failed: {done.stderr[-2000:]}")
    found: list[Trial] = json.loads(done.stdout.splitlines()[-1])
    return found
