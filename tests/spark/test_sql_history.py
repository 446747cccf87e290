"""SELECT over history: topics as they are, declared or not, with all that Spark's SELECT has."""

import json
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd  # type: ignore[import-untyped]
import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.producer import Producer
from ottla.registry.in_memory import MemoryRegistry
from ottla.serdes.avro import AvroSerde
from ottla.sql.errors import SqlError
from ottla.sql.history.history import History
from ottla.sql.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = [{"id": n, "who": "abc"[n % 3], "price": round(random.Random(n).uniform(1, 50), 2)} for n in range(200)]
SCHEMA = {
    "type": "record",
    "name": "person",
    "fields": [{"name": "who", "type": "string"}, {"name": "town", "type": "string"}],
}


def written(bootstrap: str, topic: str, records: Sequence[tuple[bytes | None, bytes | None, int]]) -> None:
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        producer = Producer(cluster)
        for key, value, timestamp in records:
            producer.send(topic, value, key=key, timestamp=timestamp)
        producer.flush()


@pytest.fixture(scope="module")
def history(bootstrap: str, spark: "SparkSession") -> History:
    """`h_orders` is JSON that nobody declared, `h_people` Avro by the registry, H_CARDS a table."""
    from ottla.pipelines.source.data_source import OttlaDataSource  # noqa: PLC0415  imports pyspark

    registry = MemoryRegistry()
    avro: Any = AvroSerde(registry, json.dumps(SCHEMA), part="value")
    written(
        bootstrap, "h_orders", [(b"k", json.dumps(each).encode(), 1000 * place) for place, each in enumerate(ORDERS)]
    )
    people = [{"who": who, "town": town} for who, town in (("a", "Bern"), ("b", "Chur"), ("c", "Bern"))]
    written(bootstrap, "h_people", [(None, avro.encode_for(each, "h_people", []), 0) for each in people])
    cards = [(b"x", b'{"N":1}', 0), (b"y", b'{"N":2}', 0), (b"x", b'{"N":3}', 0), (b"y", None, 0), (b"z", b"oops", 0)]
    written(bootstrap, "h_cards", cards)
    OttlaDataSource.register(spark)  # as whoever used the session before may have done
    session = Session()
    text = "CREATE TABLE h_cards (id STRING PRIMARY KEY, n INT) WITH (kafka_topic='h_cards', value_format='JSON');"
    for statement, own in session.statements(text):
        session.change(statement, own, {})
    return History.over(spark, bootstrap, session.catalog.sources, registry)


def test_a_topic_of_json_and_one_of_avro_are_selected_from_at_once(history: History) -> None:
    names, rows = history.rows(
        "SELECT town, COUNT(*) AS n, ROUND(SUM(price), 2) AS total FROM h_orders JOIN h_people USING (who) "
        "GROUP BY town ORDER BY town",
        limit=10,
    )
    frame = pd.DataFrame(ORDERS).assign(town=lambda each: each.who.map({"a": "Bern", "b": "Chur", "c": "Bern"}))
    expected = frame.groupby("town").price.agg(["size", "sum"]).round(2)
    assert names == ["town", "n", "total"]
    assert rows == [(town, int(each["size"]), float(each["sum"])) for town, each in expected.iterrows()]
    assert [each.because.rpartition("values: ")[2] for each in history.guessed] == [
        "200 of 200 are JSON objects",
        "schema 1 of the registry (AVRO)",
    ]


def test_a_rank_over_history_is_that_of_pandas(history: History) -> None:
    _, rows = history.rows(
        "WITH ranked AS (SELECT id, who, RANK() OVER (PARTITION BY who ORDER BY price DESC) AS place FROM h_orders) "
        "SELECT id, place FROM ranked ORDER BY id",
        limit=1000,
    )
    frame = pd.DataFrame(ORDERS)
    frame["place"] = frame.groupby("who").price.rank(method="min", ascending=False).astype(int)
    assert rows == list(frame[["id", "place"]].itertuples(index=False, name=None))


def test_a_table_is_the_newest_row_of_each_key(history: History) -> None:
    assert history.rows("SELECT id, n FROM h_cards", limit=10)[1] == [("x", 3)]


def test_times_and_offsets_bound_what_is_read(history: History) -> None:
    by_time = (
        "SELECT COUNT(*), MIN(id), MAX(id) FROM h_orders BETWEEN '1970-01-01T00:00:10Z' AND '1970-01-01T00:00:20Z'"
    )
    assert history.rows(by_time, limit=1)[1] == [(11, 10, 20)]
    assert history.rows("SELECT MAX(o.ROWOFFSET) FROM h_orders BETWEEN 3 AND 5 o", limit=1)[1] == [(5,)]


def test_what_spark_refuses_is_an_error_of_sql(history: History) -> None:
    with pytest.raises(SqlError, match="nothing_there"):
        history.rows("SELECT * FROM nothing_there", limit=1)
    with pytest.raises(SqlError, match="prize"):
        history.rows("SELECT prize FROM h_orders", limit=1)
