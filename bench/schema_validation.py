"""What validation at the broker costs: batches of 1 KB Avro records judged on one core, without network and log.

`python -m bench.schema_validation` prints megabytes of record values for each second of processor time, the best of
several rounds. The registry is taken as known already: a schema is asked for once.
"""

import asyncio
import json
from collections.abc import Sequence
from io import BytesIO
from time import process_time
from typing import Any, cast

import fastavro

from ottla.broker.validation import PartName, Validation
from ottla.node.schema_payloads import Text, decoder
from ottla.protocol.records import NewRecord, build_batch
from ottla.storage.config import LogConfig, SchemaRules

RECORDS = 500
ROUNDS = 60
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


def main() -> None:
    for depth, decode in (("id", False), ("payload", True)):
        for name, codec in (("none", 0), ("lz4", 3), ("zstd", 4)):
            print(f"{depth:8} {name:5} {megabytes_per_second(decode=decode, codec=codec):8.0f} MB/s")


if __name__ == "__main__":
    main()
