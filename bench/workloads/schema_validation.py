"""Validation at the broker: batches of 1 KB Avro records judged on one core, and what a node pays for it.

First batches are judged by the broker's code alone, without network and log: megabytes of record values for each second
of processor time, the best of several rounds; the schema is taken as known already, as it is asked for once. Then
librdkafka writes the same records, without compression and acks=all, to three topics of a node with a registry: one
that is not validated, one whose ids are, and one whose payloads are. The CPU is that of node and registry together, by
GB of values; what a topic pays for validation is the difference to the first. Apache Kafka has no counterpart.
"""

import asyncio
import http.client
import json
from collections.abc import Sequence
from io import BytesIO
from time import process_time
from typing import Any, cast

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, Target
from bench.process_cost import cpu_of
from bench.servers import Ottla, Server, free_ports, settle
from ottla.broker.validation import PartName, Validation
from ottla.node.schema_payloads import Text, decoder
from ottla.protocol.records import NewRecord, build_batch
from ottla.storage.config import LogConfig, SchemaRules

RECORDS = 500
ROUNDS = 60
PATIENCE_SECONDS = 120.0
METRICS = (
    Metric("payload", "payloads judged on one core", "MB/s", Target(100, of_ratio=False, at_least=True)),
    Metric("payload lz4", "of them compressed with lz4", "MB/s"),
    Metric("id", "ids judged on one core", "MB/s"),
    Metric("id lz4", "of them compressed with lz4", "MB/s"),
    Metric("plain cpu", "CPU of a node for a GB that is not validated", "s"),
    Metric("id cpu", "CPU of a node for a GB, ids validated", "s"),
    Metric("payload cpu", "CPU of a node for a GB, payloads validated", "s"),
)
VALIDATED = "confluent.value.schema.validation"
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "id": {VALIDATED: "true"},
    "payload": {VALIDATED: "true", "ottla.schema.validation.depth": "payload"},
}
NOON = 1_700_000_000_000
SCHEMA = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "customer", "type": "string"}, {"name": "total", "type": "double"},
  {"name": "lines", "type": {"type": "array", "items": "string"}}, {"name": "note", "type": ["null", "string"]}]}"""
PARSED = fastavro.parse_schema(json.loads(SCHEMA))


class KnownSchemas:
    """A registry that knows one schema."""

    def __init__(self) -> None:
        self._decode = decoder(Text("AVRO", SCHEMA, ()), ())

    async def objection(self, topic: str, part: PartName, strategy: str, mark: bytes) -> str:
        return ""

    async def objections(self, mark: bytes, payloads: Sequence[bytes]) -> list[str]:
        return list(map(self._decode, payloads))


def order(number: int) -> bytes:
    out = BytesIO()
    members = {"id": number, "customer": "c" * 40, "total": 1.5, "lines": ["x" * 90] * 10, "note": None}
    fastavro.schemaless_writer(out, PARSED, members)
    return b"\0\0\0\0\1" + out.getvalue()


def megabytes_per_second(*, decode: bool, codec: int) -> float:
    values = [order(number) for number in range(RECORDS)]
    batch = memoryview(build_batch([NewRecord(None, value, NOON) for value in values], codec=codec))
    config = LogConfig(validation=SchemaRules(None, "TopicNameStrategy", decode, ""))
    validation = Validation(KnownSchemas(), cast(Any, None), cast(Any, None))

    async def best_of_rounds() -> float:
        best = float("inf")
        for _ in range(ROUNDS):
            began = process_time()
            assert await validation.judge("orders", config, batch) is None
            best = min(best, process_time() - began)
        return best

    return sum(map(len, values)) / asyncio.run(best_of_rounds()) / 1e6


def run(context: Context) -> list[Measure]:
    trials = [trial(context) for _ in range(min(3, context.rounds))]
    name = "schema validation at the broker, 1 KB of Avro"
    return [Measure(name, metric, (), tuple(found[metric.key] for found in trials)) for metric in METRICS]


def trial(context: Context) -> dict[str, float]:
    found = {}
    for depth, decode in (("id", False), ("payload", True)):
        found[depth] = megabytes_per_second(decode=decode, codec=0)
        found[f"{depth} lz4"] = megabytes_per_second(decode=decode, codec=3)
    (port,) = free_ports(1)
    server = context.new_server(Ottla)
    with server.properties.open("a") as file:
        file.write(f"registry.listeners=http://127.0.0.1:{port}\n")
    server.start()
    create_topics(server)
    values = [order(number) for number in range(RECORDS)]
    settings = {"bootstrap.servers": server.bootstrap, "linger.ms": 50, "batch.num.messages": RECORDS}
    for name in TOPICS:
        producer = Producer(settings)
        register(port, name)
        write(producer, name, values)  # once unmeasured: the schema is asked for now
        settle()
        before = cpu_of(server.pid)
        amount = 0
        for _ in range(context.amount(500, 20)):
            amount += write(producer, name, values)
        found[f"{name} cpu"] = cpu_of(server.pid).since(before).total / amount * 1e9
    context.discard(server)
    return found


def create_topics(server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topics = [NewTopic(name, 1, 1, config=settings) for name, settings in TOPICS.items()]
    for done in admin.create_topics(topics).values():
        done.result(PATIENCE_SECONDS)


def register(port: int, topic: str) -> None:
    """All topics have the same schema, and it has the id that stands in front of every value."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    body = json.dumps({"schema": SCHEMA})
    connection.request("POST", f"/subjects/{topic}-value/versions", body, {"content-type": "application/json"})
    told = json.loads(connection.getresponse().read())
    connection.close()
    if told.get("id") != 1:
        raise ToolFailed(f"the registry answers {told}")


def write(producer: Producer, topic: str, values: Sequence[bytes]) -> int:
    """The bytes of values that were acknowledged."""
    refused: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(str(error))

    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
    if producer.flush(PATIENCE_SECONDS) or refused:
        raise ToolFailed(f"{topic} does not take {refused[:1] or 'all'}")
    return sum(map(len, values))
