"""Avro, JSON Schema and Protobuf on Spark: columns as record by record, errors beside them."""

from typing import TYPE_CHECKING, Any

import pytest

from ottla.registry.in_memory import MemoryRegistry
from ottla.serdes.by_name import Serdes
from tests.rules.serdes.avro.everything import ALL, VALUE, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRADES = {
    "json_schema": '{"type":"object","properties":{"ticker":{"type":"string"},"size":{"type":"integer"}}}',
    "protobuf": 'syntax = "proto3"; message Trade { string ticker = 1; int64 size = 2; }',
}
HEADERS = "array<struct<key: string, value: binary>>"


def test_records_become_typed_columns_and_the_same_bytes_again(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.serdes.arrow import from_column  # noqa: PLC0415
    from ottla.streams.run.serde_columns import decode_column, encode_column  # noqa: PLC0415
    from ottla.streams.run.type_columns import spark_type  # noqa: PLC0415

    serde = Serdes.avro(MemoryRegistry(), ALL)
    values = [VALUE, {**VALUE, "inner": None, "either": None}, None]
    data = [None if value is None else serde.encode_for(value, "t", []) for value in values]
    rows = [(index, each) for index, each in enumerate([*data, b"no avro"])]
    frame = spark.createDataFrame(rows, "n int, data binary").coalesce(1)
    column = decode_column(serde, F.col("data"))
    read = frame.select("n", "data", column.value.alias("v"), column.error.alias("e"))
    assert dict(read.dtypes)["v"] == spark.createDataFrame([], f"v {spark_type(serde.type)}").dtypes[0][1]
    found = read.orderBy("n").collect()
    convert = from_column(serde.type)
    assert convert is not None
    assert [convert(row["v"].asDict(recursive=True)) if row["v"] else None for row in found] == [*values, None]
    assert [row["e"] is None for row in found] == [True, True, True, False]
    assert "no schema id in front of it" in found[3]["e"]
    written = read.select("n", encode_column(serde, F.col("v"), topic=F.lit("t")).alias("again")).orderBy("n").collect()
    assert [row["again"] for row in written] == [*data, None]


def test_ids_are_found_in_headers(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.serde_columns import decode_column  # noqa: PLC0415

    registry = MemoryRegistry()
    writer = Serdes.avro(registry, record(("a", "int")), ids="header")
    reader = Serdes.avro(registry, record(("a", "int")))
    headers: list[Any] = []
    rows = [(writer.encode_for({"a": 1}, "t", headers), headers), (reader.encode_for({"a": 2}, "t", []), None)]
    frame = spark.createDataFrame(rows, f"data binary, headers {HEADERS}").coalesce(1)
    column = decode_column(reader, F.col("data"), F.col("headers"))
    assert sorted(row["a"] for row in frame.select(column.value["a"].alias("a")).collect()) == [1, 2]


@pytest.mark.parametrize("kind", ["json_schema", "protobuf"])
def test_the_other_languages_become_typed_columns_too(spark: "SparkSession", kind: str) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.serde_columns import decode_column, encode_column  # noqa: PLC0415

    serde: Any = {"json_schema": Serdes.json_schema, "protobuf": Serdes.protobuf}[kind](MemoryRegistry(), TRADES[kind])
    data = serde.encode_for({"ticker": "acme", "size": 11}, "t", [])
    frame = spark.createDataFrame([(1, data), (2, b"nothing"), (3, None)], "n int, data binary").coalesce(1)
    column = decode_column(serde, F.col("data"))
    read = frame.select("n", column.value.alias("v"), column.error.alias("e"))
    assert dict(read.dtypes)["v"] == "struct<ticker:string,size:bigint>"
    again = encode_column(serde, F.col("v"), topic=F.lit("t")).alias("again")
    found = read.select("n", "v.*", "e", again).orderBy("n").collect()
    assert [(row["ticker"], row["size"]) for row in found] == [("acme", 11), (None, None), (None, None)]
    assert [row["e"] is None for row in found] == [True, False, True]
    assert [row["again"] for row in found] == [data, None, None]
