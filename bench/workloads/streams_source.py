"""Records of 100 bytes read by the data source `ottla` into Spark, batch mode, and counted there: 2 cores for all.

4 partitions with 6,000,000 uncompressed records in an ottla node on the same machine, local[2], one session, whose
first two reads warm it up. The whole rows come into the JVM: what is summed up is the length of their values.
"""

import json
import subprocess
import sys

from bench.context import Context
from bench.java_tools import ToolFailed, producer_performance
from bench.measures import Measure, Metric, Target, Trial, measures
from bench.servers import Ottla, Server

METRICS = (Metric("rate", "records per second", "1/s", Target(300_000, of_ratio=False, at_least=True)),)
PARTITIONS = 4
SIZE = 100
PATIENCE_SECONDS = 300.0
PROGRAM = """
import json, sys, time
from pyspark.sql import functions as F
from ottla.pipelines.session import new_session
from ottla.pipelines.source.data_source import OttlaDataSource
bootstrap, topic, reads = sys.argv[1], sys.argv[2], int(sys.argv[3])
spark = new_session("source", master="local[2]")
OttlaDataSource.register(spark)
rates = []
for _ in range(reads + 2):
    began = time.perf_counter()
    rows = spark.read.format("ottla").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic).load()
    count, size = rows.agg(F.count("*"), F.sum(F.length("value"))).first()
    rates.append(count / (time.perf_counter() - began))
print(json.dumps({"count": count, "size": size, "rates": rates[2:]}))
"""


def run(context: Context) -> list[Measure]:
    server = context.new_server(Ottla)
    server.start()
    records = context.amount(6_000_000, 300_000)
    with context.topic(server, PARTITIONS) as topic:
        producer_performance(server.bootstrap, topic, records, SIZE, records // 10)
        taken = _read(server, topic, records, context.rounds)
    context.discard(server)
    return measures("streams, source", METRICS, ([], taken))


def _read(server: Server, topic: str, records: int, rounds: int) -> list[Trial]:
    command = [sys.executable, "-c", PROGRAM, server.bootstrap, topic, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    if done.returncode:
        raise ToolFailed(f"the source failed: {done.stderr[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if (told["count"], told["size"]) != (records, records * SIZE):
        raise ToolFailed(f"{told['count']} records of {told['size']} bytes were read, not {records}")
    return [{"rate": rate} for rate in told["rates"]]
