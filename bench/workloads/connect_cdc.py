"""Changes of PostgreSQL into a topic: 200,000 inserts of four columns, 100 in a transaction, JSON without schemas.

The connector runs as a job on Spark (local[2]) in a session that has run it before; server, broker and connector share
the machine. The rows lie in the server's log when it begins, and the start of its query counts. CPU is that of the
connector's processes (Spark's JVM and its Python workers) and of the database's, each by row.
"""

import json
import subprocess
import sys

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Target, Trial, measures
from bench.postgres import postgres
from bench.servers import Ottla

METRICS = (
    Metric("rate", "rows per second", "1/s", Target(25_000, of_ratio=False, at_least=True)),
    Metric("connector", "connector's CPU by row", "µs"),
    Metric("database", "database's CPU by row", "µs"),
)
PATIENCE_SECONDS = 900.0
PROGRAM = """
import json, os, sys, tempfile, threading, time
import psycopg
from bench.process_cost import Meter
from ottla.connect.jobs.query import ConnectorWork
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.start import delivery
from ottla.pipelines.session import new_session
bootstrap, port, pid, rows, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
json_converter = "org.apache.kafka.connect.json.JsonConverter"
config = {
    "connector.class": "postgres-cdc", "database.hostname": "127.0.0.1", "database.port": port,
    "database.dbname": "postgres", "topic.prefix": "bench", "slot.name": "bench", "snapshot.mode": "no_data",
    "key.converter": json_converter, "value.converter": json_converter,
    "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false",
}
database = psycopg.connect(host="127.0.0.1", port=int(port), user="postgres", dbname="postgres", autocommit=True)
database.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text, amount double precision, at timestamp)")
spark = new_session("cdc", master="local[2]")
directory = tempfile.mkdtemp()
spec = JobSpec("cdc", config, bootstrap, "bench", "bench-offsets", directory, once=True)
meters = {"connector": Meter(os.getpid()), "database": Meter(pid)}
ended = threading.Event()
def watch():
    while not ended.wait(0.1):
        for meter in meters.values():
            meter.total()
threading.Thread(target=watch, daemon=True).start()
def insert(first):
    with database.cursor() as cursor:
        for number in range(first, first + rows, 100):
            cursor.execute(
                "INSERT INTO t SELECT %s + g, 'the name of row ' || g, g * 1.5, now() FROM generate_series(0, 99) g",
                (number,),
            )
def run():
    work = ConnectorWork(spark.newSession(), spec, delivery(spec))
    work.run()
    return work.progress()["counts"]["written"]
run()
trials = []
for turn in range(rounds + 1):
    insert(turn * rows)
    before = {name: meter.total() for name, meter in meters.items()}
    began = time.perf_counter()
    written = run()
    took = time.perf_counter() - began
    assert written == rows, written
    used = {name: (meter.total() - before[name]) / rows * 1e6 for name, meter in meters.items()}
    trials.append({"rate": rows / took, **used})
print(json.dumps(trials[1:]))
ended.set()
"""


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    rows = context.amount(200_000, 20_000)
    with postgres(server.directory.with_name("postgres")) as (port, pid):
        taken = _read(server.bootstrap, port, pid, rows, context.rounds)
    context.discard(server)
    return measures("connect, PostgreSQL changes", METRICS, ([], taken))


def _read(bootstrap: str, port: int, pid: int, rows: int, rounds: int) -> list[Trial]:
    command = [sys.executable, "-c", PROGRAM, bootstrap, str(port), str(pid), str(rows), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    if done.returncode:
        raise ToolFailed(f"the connector failed: {done.stderr[-2000:]}")
    found: list[Trial] = json.loads(done.stdout.splitlines()[-1])
    return found
