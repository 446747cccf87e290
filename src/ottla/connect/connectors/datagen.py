"""Datagen: made-up records, by a schema or by the name of an example, so many a second, so many altogether.

The n-th record of a seed is always the same, whenever and wherever it is made: the position is a number, and a read
that is done again gives what it gave.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final, Literal

import msgspec

from ottla.connect import spi
from ottla.connect.connectors.made_up import BadSchema, MadeUp, made_up
from ottla.connect.connectors.made_up_examples import EXAMPLES

LONGEST_PAUSE_S: Final = 1.0
"""What was not made while it stood still is not made up for beyond this."""
LARGEST_SCHEMA: Final = 1 << 20

Example = Literal["clickstream", "orders", "pageviews", "ratings", "stock_trades", "users"]


class DatagenConfig(spi.Config):
    kafka_topic: Annotated[str, msgspec.Meta(description="Where the records go.", min_length=1)]
    quickstart: Annotated[Example | None, msgspec.Meta(description="The name of an example.")] = None
    schema_string: Annotated[str | None, msgspec.Meta(description="A record schema of Avro, as JSON.")] = None
    schema_filename: Annotated[str | None, msgspec.Meta(description="A file with one.")] = None
    schema_keyfield: Annotated[str | None, msgspec.Meta(description="The field that is the key as well.")] = None
    max_interval: Annotated[int, msgspec.Meta(ge=0, description="Longest pause between records, in ms.")] = 500
    rate: Annotated[float, msgspec.Meta(gt=0, description="Records a second, in place of max.interval.")] | None = None
    iterations: Annotated[int, msgspec.Meta(description="How many altogether; -1: without end.")] = -1
    random_seed: Annotated[int, msgspec.Meta(description="Another one, other records.")] = 0


class Datagen(spi.Source[DatagenConfig]):
    def __init__(self, config: DatagenConfig, name: str, partition: spi.Partition = {}) -> None:  # noqa: B006  never changed
        super().__init__(config, name, partition)
        self._made: MadeUp | None = None
        self._default_key = EXAMPLES[config.quickstart].key if config.quickstart is not None else None

    def validate(self) -> None:
        self._making()

    def partitions(self) -> Sequence[spi.Partition]:
        return [{"task.id": 0}]

    @classmethod
    def check_offset(cls, partition: spi.Partition, offset: spi.Offset | None) -> None:
        spi.number_of(partition, "task.id", "partition")
        if offset is not None:
            spi.number_of(offset, "iteration")

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        made = self._making()
        begin = int((start or {}).get("iteration", 0))
        now_s = time.time()
        since_s = max(float((start or {}).get("at", now_s)), now_s - LONGEST_PAUSE_S)
        count = limit if self._rate is None else min(limit, int((now_s - since_s) * self._rate))
        if start is None:
            count = max(count, 1)
        if self.config.iterations >= 0:
            count = min(count, self.config.iterations - begin)
        if count <= 0:
            return spi.Read((), None)
        at = now_s if self._rate is None else since_s + count / self._rate
        key = self.config.schema_keyfield or self._default_key
        rows = [self._row(made, number, key) for number in range(begin, begin + count)]
        return spi.Read(rows, {"iteration": begin + count, "at": round(at, 3)})

    def poll_interval_ms(self) -> int:
        return 100 if self._rate is None else min(1000, int(1000 / self._rate))

    def is_done(self, start: spi.Offset | None) -> bool:
        return 0 <= self.config.iterations <= int((start or {}).get("iteration", 0))

    @property
    def _rate(self) -> float | None:
        """None: as fast as can be."""
        if self.config.rate is not None:
            return self.config.rate
        return 2000 / self.config.max_interval if self.config.max_interval else None

    def _row(self, made: MadeUp, number: int, key: str | None) -> spi.Row:
        # Mixed, so that neighbours have nothing in common.
        dice = Random((self.config.random_seed << 40) ^ (number * 0x9E3779B97F4A7C15))
        value = made.value(dice, number)
        if key is None:
            return spi.Row(self.config.kafka_topic, value)
        return spi.Row(self.config.kafka_topic, value, value.get(key), key_schema=made.schema.field(key).schema)  # type: ignore[union-attr]

    def _making(self) -> MadeUp:
        if self._made is None:
            self._made = self._read_schema()
        return self._made

    def _read_schema(self) -> MadeUp:
        config = self.config
        given = [name for name in ("quickstart", "schema_string", "schema_filename") if getattr(config, name)]
        if len(given) != 1:
            raise spi.ConfigRefused("quickstart", "one of quickstart, schema.string and schema.filename has to be set")
        key = given[0].replace("_", ".")
        try:
            if config.quickstart is not None:
                schema: Any = EXAMPLES[config.quickstart].schema
            else:
                text = config.schema_string or _text(Path(config.schema_filename or ""))
                schema = msgspec.json.decode(text)
            made = made_up(schema)
        except (OSError, msgspec.DecodeError, BadSchema, RecursionError) as error:
            raise spi.ConfigRefused(key, str(error)) from error
        field = config.schema_keyfield
        if field is not None and made.schema.field(field) is None:
            raise spi.ConfigRefused("schema.keyfield", f"the schema has no field {field}")
        return made


def _text(path: Path) -> str:
    if path.stat().st_size > LARGEST_SCHEMA:
        raise BadSchema(f"{path} is larger than {LARGEST_SCHEMA:,} bytes")
    return path.read_text(encoding="utf-8")
