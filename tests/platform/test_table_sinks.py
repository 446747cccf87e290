"""Sinks into Delta and Iceberg tables, on real tables in a folder and in a store that speaks S3."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from ottla.connect import spi
from ottla.connect.connectors.tables.delta import DeltaConfig, DeltaSink
from ottla.connect.connectors.tables.iceberg import IcebergConfig, IcebergSink
from ottla.connect.connectors.tables.rows import rows_of
from ottla.connect.connectors.tables.sink import TableSink
from ottla.connect.data.logical import DATE, TIMESTAMP, decimal_schema
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Field, Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type
from tests.platform.systems.object_store import object_store

Make = Callable[..., TableSink[Any]]


class Lake:
    """One kind of table: how a sink for it is made, and how somebody else reads it."""

    def __init__(self, kind: str, place: Path) -> None:
        self.kind = kind
        self._place = place
        self._catalog = {"uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}"}

    def sink(self, name: str = "lake", **config: str) -> TableSink[Any]:
        given = {key.replace("_", "."): value for key, value in config.items()}
        if self.kind == "delta":
            return DeltaSink(spi.parse(DeltaConfig, {"table.uri": str(self._place), **given}), name)
        own = {f"iceberg.catalog.{key}": value for key, value in self._catalog.items()}
        return IcebergSink(spi.parse(IcebergConfig, {**own, **given}), name)

    def table(self, topic: str) -> pa.Table:
        if self.kind == "delta":
            return DeltaTable(str(self._place / topic)).to_pyarrow_table()
        return load_catalog("iceberg", **self._catalog).load_table(f"default.{topic}").scan().to_arrow()

    def rows(self, topic: str, by: str) -> list[dict[str, Any]]:
        return sorted(self.table(topic).to_pylist(), key=lambda row: str(row[by]))


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def _batch(
    sink: TableSink[Any],
    topic: str,
    *values: Any,
    first: int = 0,
    partition: int = 0,
    keys: tuple[Any, ...] = (),
    topic_id: str = "",
) -> list[spi.Refused]:
    keyed = keys or (None,) * len(values)
    records = [
        ConnectRecord(topic, partition, key=key, value=value, offset=first + at)
        for at, (key, value) in enumerate(zip(keyed, values, strict=True))
    ]
    spans = [spi.Span(topic, partition, first, first + len(records), topic_id)]
    sink.begin(spans)
    half = len(records) // 2
    refused = [*sink.write(spi.Batch(records[:half], spans))]
    refused += [each._replace(at=each.at + half) for each in sink.write(spi.Batch(records[half:], spans))]
    return [*refused, *sink.end()]


def test_rows_are_written_once_though_their_batch_comes_again(lake: Lake) -> None:
    for _ in range(2):
        assert _batch(lake.sink(), "orders", {"n": 1}, {"n": 2}, {"n": 3}) == []
    assert _batch(lake.sink(), "orders", {"n": 4}, first=3) == []
    assert _batch(lake.sink(), "orders", {"n": 5}, partition=1) == []
    assert [row["n"] for row in lake.rows("orders", "n")] == [1, 2, 3, 4, 5]


def test_a_record_that_does_not_fit_is_refused_alone_and_again_when_its_batch_comes_again(lake: Lake) -> None:
    expected = [spi.Refused(1, "field n: 'many' is no int64")]
    assert _batch(lake.sink(), "orders", {"n": 1}, {"n": "many"}, {"n": 3}, {"n": 4}) == expected
    assert _batch(lake.sink(), "orders", {"n": 1}, {"n": "many"}, {"n": 3}, {"n": 4}) == expected
    assert [row["n"] for row in lake.rows("orders", "n")] == [1, 3, 4]


def test_what_is_no_object_is_refused_with_what_helps(lake: Lake) -> None:
    refused = _batch(lake.sink(), "orders", {"n": 1}, "text", None)
    assert [each.at for each in refused] == [1, 2]
    assert "HoistField" in str(refused[0].error)


def test_new_fields_become_columns_also_inside_of_objects(lake: Lake) -> None:
    assert _batch(lake.sink(), "orders", {"n": 1, "at": {"city": "Prague"}}) == []
    assert _batch(lake.sink(), "orders", {"n": 2, "at": {"city": "Brno", "zip": 602}, "tags": ["x"]}, first=1) == []
    assert lake.rows("orders", "n") == [
        {"n": 1, "at": {"city": "Prague", "zip": None}, "tags": None},
        {"n": 2, "at": {"city": "Brno", "zip": 602}, "tags": ["x"]},
    ]


def test_an_upsert_keeps_the_last_of_each_key_and_a_tombstone_deletes(lake: Lake) -> None:
    def sink() -> TableSink[Any]:
        return lake.sink(insert_mode="upsert", pk_mode="record_key", pk_fields="id", delete_enabled="true")

    assert _batch(sink(), "people", {"v": 1}, {"v": 2}, {"v": 3}, keys=("a", "b", "a")) == []
    assert lake.rows("people", "id") == [{"id": "a", "v": 3}, {"id": "b", "v": 2}]
    for _ in range(2):
        assert _batch(sink(), "people", None, {"v": 9}, {"v": 4}, first=3, keys=("b", "c", "a")) == []
    assert lake.rows("people", "id") == [{"id": "a", "v": 4}, {"id": "c", "v": 9}]
    refused = _batch(sink(), "people", {"v": 1}, first=6)
    assert "it has no key" in str(refused[0].error)


def test_what_a_row_that_is_refused_stood_in_the_place_of_counts(lake: Lake) -> None:
    def sink() -> TableSink[Any]:
        return lake.sink(insert_mode="upsert", pk_mode="record_key", pk_fields="id", delete_enabled="true")

    assert _batch(sink(), "people", {"v": 1}, {"v": 2}, keys=("a", "b")) == []
    values = ({"v": 3}, {"v": "x"}, None, {"v": "y"}, {"v": "z"}, {"v": 4})
    keys = ("a", "a", "b", "b", "c", ["d"])
    refused = _batch(sink(), "people", *values, first=2, keys=keys)
    assert sorted(each.at for each in refused) == [1, 3, 4, 5]
    assert lake.rows("people", "id") == [{"id": "a", "v": 3}]


def test_two_connectors_do_not_take_each_others_offsets_for_theirs(lake: Lake) -> None:
    assert _batch(lake.sink("one"), "orders", {"n": 1}) == []
    assert _batch(lake.sink("two"), "orders", {"n": 2}) == []
    assert [row["n"] for row in lake.rows("orders", "n")] == [1, 2]


def test_a_topic_that_was_deleted_and_made_again_is_written_from_its_beginning(lake: Lake) -> None:
    assert _batch(lake.sink(), "orders", {"n": 1}, {"n": 2}, topic_id="one") == []
    assert _batch(lake.sink(), "orders", {"n": 3}, topic_id="another") == []
    assert [row["n"] for row in lake.rows("orders", "n")] == [1, 2, 3]


def test_tasks_that_commit_side_by_side_lose_nothing(lake: Lake) -> None:
    """Both looked at the table before either committed."""
    first, second = lake.sink(), lake.sink()
    assert _batch(first, "orders", {"n": 0}) == []
    for sink, partition in ((first, 1), (second, 2)):
        spans = [spi.Span("orders", partition, 0, 1)]
        sink.begin(spans)
        assert (
            list(sink.write(spi.Batch([ConnectRecord("orders", partition, value={"n": partition}, offset=0)], spans)))
            == []
        )
    assert [*first.end(), *second.end()] == []
    assert [row["n"] for row in lake.rows("orders", "n")] == [0, 1, 2]


def test_a_batch_that_another_has_committed_since_it_began_is_not_committed_again(lake: Lake) -> None:
    """Of two lives of one task, the first stood still."""
    slow, quick = lake.sink(), lake.sink()
    assert _batch(slow, "orders", {"n": 0}) == []
    spans = [spi.Span("orders", 0, 1, 2)]
    given = spi.Batch([ConnectRecord("orders", 0, value={"n": 1}, offset=1)], spans)
    for sink in (slow, quick):
        sink.begin(spans)
        assert list(sink.write(given)) == []
    assert list(quick.end()) == []
    with pytest.raises((spi.TryAgain, spi.ConnectorFailed)):
        slow.end()
    with pytest.raises(spi.ConnectorFailed, match="others than when this batch began"):
        slow.end()
    slow.begin(spans)
    assert [*slow.write(given), *slow.end()] == []
    assert [row["n"] for row in lake.rows("orders", "n")] == [0, 1]


def test_a_sink_that_stays_open_looks_at_the_offsets_anew_in_each_batch(lake: Lake) -> None:
    kept = lake.sink()
    assert _batch(kept, "orders", {"n": 0}) == []
    assert _batch(lake.sink(), "orders", {"n": 1}, first=1) == []
    assert _batch(kept, "orders", {"n": 1}, {"n": 2}, first=1) == []
    assert [row["n"] for row in lake.rows("orders", "n")] == [0, 1, 2]


def test_a_table_that_must_be_there_and_is_not_fails_the_connector(lake: Lake) -> None:
    with pytest.raises(spi.ConnectorFailed, match=r"auto\.create=false"):
        _batch(lake.sink(auto_create="false"), "orders", {"n": 1})


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"insert_mode": "upsert"}, "pk.mode"),
        ({"insert_mode": "upsert", "pk_mode": "record_value"}, "pk.fields"),
        ({"delete_enabled": "true"}, "delete.enabled"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(lake: Lake, config: dict[str, str], key: str) -> None:
    with pytest.raises(spi.ConfigRefused) as refused:
        lake.sink(**config).validate()
    assert refused.value.key == key


def test_iceberg_refuses_to_be_told_when_to_put_files_together(tmp_path: Path) -> None:
    with pytest.raises(spi.ConfigRefused, match="rewrite_data_files") as refused:
        Lake("iceberg", tmp_path).sink(compaction_commits="100").validate()
    assert refused.value.key == "compaction.commits"
    Lake("iceberg", tmp_path).sink().validate()


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_small_files_of_delta_are_put_together(tmp_path: Path, mode: str) -> None:
    lake = Lake("delta", tmp_path)
    keyed = {"pk_mode": "record_key", "pk_fields": "id"} if mode == "upsert" else {}
    sink = lake.sink(insert_mode=mode, compaction_commits="4", **keyed)
    for offset in range(5):
        assert _batch(sink, "orders", {"n": offset}, first=offset, keys=(offset,)) == []
    assert [row["n"] for row in lake.rows("orders", "n")] == [0, 1, 2, 3, 4]
    assert len(DeltaTable(str(tmp_path / "orders")).file_uris()) == 2, "four in one, and the last"


def test_they_are_where_each_batch_is_two_commits(tmp_path: Path) -> None:
    """One deletes, one merges."""
    lake = Lake("delta", tmp_path)
    keyed = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id", "delete_enabled": "true"}
    sink = lake.sink(compaction_commits="4", **keyed)
    for batch in range(6):
        given = ({"n": batch}, {"n": batch}, None)
        keys = (2 * batch, 2 * batch + 1, 2 * batch - 2)
        assert _batch(sink, "orders", *given, first=3 * batch, keys=keys) == []
    assert [row["id"] for row in lake.rows("orders", "n")] == [1, 3, 5, 7, 9, 10, 11]
    assert len(DeltaTable(str(tmp_path / "orders")).file_uris()) <= 3


def test_types_of_schemas_are_types_of_columns() -> None:
    schema = Schema(
        Type.STRUCT,
        fields=(
            Field("price", 0, decimal_schema(2)),
            Field("day", 1, DATE),
            Field("at", 2, TIMESTAMP),
            Field("counts", 3, Schema(Type.MAP, key_schema=Schema(Type.STRING), value_schema=Schema(Type.INT32))),
            Field("small", 4, Schema(Type.INT8, optional=True)),
        ),
    )
    value = Struct.of(schema, [Decimal("1.50"), Instant(86_400_000), Instant(1_500), {"x": 1}, None])
    made = rows_of([ConnectRecord("t", 0, value=value, value_schema=schema, offset=0)], None)
    assert made.refused == []
    assert made.table.to_pylist() == [
        {
            "price": Decimal("1.50"),
            "day": date(1970, 1, 2),
            "at": datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
            "counts": [("x", 1)],
            "small": None,
        }
    ]
    assert made.table.schema.field("small").type == pa.int8()


def test_deep_nesting_is_refused_and_never_a_crash() -> None:
    value: Any = 1
    for _ in range(3_000):
        value = {"a": value}
    (refusal,) = rows_of([ConnectRecord("t", 0, value=value, offset=0)], None).refused
    assert "nested deeper" in refusal.reason


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with object_store() as url:
        yield url


def test_a_table_may_lie_in_a_store_that_speaks_s3(store: str) -> None:
    boto3 = pytest.importorskip("boto3")
    login = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    boto3.client("s3", endpoint_url=store, region_name="us-east-1", **login).create_bucket(Bucket="lake")
    given = {
        "table.uri": "s3://lake/${topic}",
        "store.url": store,
        **{k.replace("_", "."): v for k, v in login.items()},
    }
    for _ in range(2):
        assert _batch(DeltaSink(spi.parse(DeltaConfig, given), "lake"), "orders", {"n": 1}, {"n": 2}) == []
    options = {"AWS_ENDPOINT_URL": store, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    options |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    assert DeltaTable("s3://lake/orders", storage_options=options).to_pyarrow_table().num_rows == 2
