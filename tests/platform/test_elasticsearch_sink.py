"""The sink for Elasticsearch and OpenSearch against a real server."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.connectors.elasticsearch.config import ElasticsearchConfig
from ottla.connect.connectors.elasticsearch.sink import ElasticsearchSink
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Field, Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Type
from tests.platform.systems.opensearch import OpenSearch, opensearch

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def server() -> Iterator[OpenSearch]:
    with opensearch() as running:
        yield running


def _sink(server: OpenSearch, **config: str) -> ElasticsearchSink:
    given = {"connection.url": server.url, **{name.replace("_", "."): config[name] for name in config}}
    # A slow machine is not wrong.
    given = {"connection.timeout.ms": "60000", "read.timeout.ms": "60000", **given}
    return ElasticsearchSink(spi.parse(ElasticsearchConfig, given), "search")


def _records(topic: str, *values: Any, keys: tuple[Any, ...] = (), first: int = 0) -> spi.Batch:
    keyed = keys or (None,) * len(values)
    records = [
        ConnectRecord(topic, 0, key=key, value=value, offset=first + at)
        for at, (key, value) in enumerate(zip(keyed, values, strict=True))
    ]
    return spi.Batch(records, [spi.Span(topic, 0, first, first + len(records))])


def test_the_seeds_own_json_indexes_what_is_written(server: OpenSearch) -> None:
    sink = _sink(server, type_name="_doc", key_ignore="true", schema_ignore="true")
    assert list(sink.write(_records("my_topic", {"a": 1}, {"a": 2}))) == []
    assert server.documents("my_topic") == {"my_topic+0+0": {"a": 1}, "my_topic+0+1": {"a": 2}}


def test_a_batch_that_comes_again_changes_nothing(server: OpenSearch) -> None:
    sink = _sink(server, schema_ignore="true")
    batch = _records("again", {"n": 1}, {"n": 2}, {"n": 3}, keys=("a", "b", "a"))
    for _ in range(2):
        assert list(sink.write(batch)) == []
    assert server.documents("again") == {"a": {"n": 3}, "b": {"n": 2}}


def test_what_is_older_than_what_is_there_is_left_out(server: OpenSearch) -> None:
    sink = _sink(server, schema_ignore="true", behavior_on_null_values="delete")
    assert list(sink.write(_records("older", {"n": 2}, keys=("a",), first=9))) == []
    assert list(sink.write(_records("older", {"n": 1}, keys=("a",), first=3))) == []
    assert server.documents("older") == {"a": {"n": 2}}
    assert list(sink.write(_records("older", None, None, keys=("a", "stranger"), first=10))) == []
    assert server.documents("older") == {}


def test_a_document_that_does_not_fit_its_mapping_is_refused_alone_with_the_field(server: OpenSearch) -> None:
    sink = _sink(server, key_ignore="true", schema_ignore="true")
    refused = list(sink.write(_records("conflict", {"n": 1}, {"n": "many"}, {"n": 3})))
    assert [each.at for each in refused] == [1]
    assert "mapper_parsing_exception" in str(refused[0].error)
    assert "[n]" in str(refused[0].error)
    assert sorted(server.documents("conflict")) == ["conflict+0+0", "conflict+0+2"]


def test_refused_documents_are_left_out_where_that_is_asked_for(server: OpenSearch) -> None:
    sink = _sink(server, key_ignore="true", schema_ignore="true", behavior_on_malformed_documents="ignore")
    assert list(sink.write(_records("ignored", {"n": 1}, {"n": "many"}))) == []
    assert sorted(server.documents("ignored")) == ["ignored+0+0"]


def test_an_index_gets_its_mapping_from_the_schema(server: OpenSearch) -> None:
    schema = Schema(Type.STRUCT, fields=(Field("n", 0, Schema(Type.INT16)), Field("s", 1, Schema(Type.STRING))))
    record = ConnectRecord("typed", 0, key="a", value_schema=schema, value=Struct.of(schema, [1, "x"]), offset=0)
    assert list(_sink(server).write(spi.Batch([record], []))) == []
    mapping = server.ask("GET", "/typed/_mapping")["typed"]["mappings"]["properties"]
    assert mapping["n"] == {"type": "short"}
    assert mapping["s"]["type"] == "text"


def test_many_documents_go_in_requests_of_the_size_that_was_set(server: OpenSearch) -> None:
    sink = _sink(server, key_ignore="true", schema_ignore="true", batch_size="300", bulk_size_bytes="9000")
    assert list(sink.write(_records("many", *({"n": n} for n in range(2_000))))) == []
    assert len(server.documents("many")) == 2_000


def test_a_server_that_is_away_is_tried_again_later_and_a_second_address_helps(server: OpenSearch) -> None:
    with socket.socket() as taken:  # bound and silent: a port that was let go may be another process's by now
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        away = _sink(server, connection_url=nobody, key_ignore="true", max_retries="0")
        with pytest.raises(spi.TryAgain, match="does not answer"):
            away.write(_records("away", {"n": 1}))
        both = _sink(server, connection_url=f"{nobody},{server.url}", key_ignore="true", schema_ignore="true")
        assert list(both.write(_records("away", {"n": 1}))) == []
    assert sorted(server.documents("away")) == ["away+0+0"]


def test_an_index_name_that_the_server_refuses_fails_with_its_reason(server: OpenSearch) -> None:
    with pytest.raises(spi.ConnectorFailed, match="invalid_index_name_exception"):
        _sink(server, key_ignore="true", topic_index_map="odd:_odd").write(_records("odd", {"n": 1}))
