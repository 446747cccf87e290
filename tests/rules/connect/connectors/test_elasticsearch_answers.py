"""A search server that hangs, answers half or lies: nothing counts as written that it has not said it wrote."""

import json
from collections.abc import Callable, Iterator

import pytest

from ottla.connect import spi
from ottla.connect.connectors.elasticsearch.config import ElasticsearchConfig
from ottla.connect.connectors.elasticsearch.sink import ElasticsearchSink
from ottla.connect.data.record import ConnectRecord
from tests.platform.systems.http_server import Answer, CommandedServer, Got, commanded_server

WRITTEN = {"index": {"status": 201}}


@pytest.fixture
def server() -> Iterator[CommandedServer]:
    with commanded_server() as running:
        yield running


def _bulk(answer: bytes) -> Callable[[Got], Answer]:
    return lambda got: Answer(200, answer if "_bulk" in got.path else b"{}")


def _written(server: CommandedServer) -> spi.Verdicts:
    config = {"connection.url": server.url, "schema.ignore": "true", "key.ignore": "true"}
    quick = {"max.retries": "1", "retry.backoff.ms": "1", "read.timeout.ms": "300"}
    sink = ElasticsearchSink(spi.parse(ElasticsearchConfig, {**config, **quick}), "search")
    records = [ConnectRecord("t", 0, key=None, value={"a": offset}, offset=offset) for offset in range(2)]
    try:
        return sink.write(spi.Batch(records, [spi.Span("t", 0, 0, 2)]))
    finally:
        sink.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b"[]",
        b"<html>",
        b"[" * 100_000,
        b'{"items":5}',
        b'{"errors":false,"items":[]}',
        json.dumps({"items": [WRITTEN, 7]}).encode(),
        json.dumps({"items": [WRITTEN, {}]}).encode(),
        json.dumps({"items": [WRITTEN, {"index": {}}]}).encode(),
        json.dumps({"items": [WRITTEN, {"index": {"status": None}}]}).encode(),
        json.dumps({"items": [WRITTEN, {"index": {"status": "201"}}]}).encode(),
        json.dumps({"items": [WRITTEN] * 3}).encode(),
    ],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again_and_no_verdict(
    server: CommandedServer, answer: bytes
) -> None:
    server.answer = _bulk(answer)
    with pytest.raises(spi.TryAgain, match="2 documents could not be written after 1 retries"):
        _written(server)
    assert len([got for got in server.got if "_bulk" in got.path]) > 1


def test_a_status_without_an_error_that_is_none_of_success_is_a_refusal(server: CommandedServer) -> None:
    server.answer = _bulk(json.dumps({"items": [WRITTEN, {"index": {"status": 400}}]}).encode())
    (refused,) = _written(server) or ()
    assert "the server answered 400" in str(refused)
    server.answer = _bulk(json.dumps({"items": [WRITTEN, WRITTEN]}).encode())
    assert not _written(server)


@pytest.mark.parametrize("trouble", [Answer(hang_up=True), Answer(silent=True), Answer(body=b'{"items": []}', cut=3)])
def test_one_that_hangs_up_or_says_nothing_or_half_may_come_back(server: CommandedServer, trouble: Answer) -> None:
    server.answer = lambda _: trouble
    with pytest.raises(spi.TryAgain, match="does not answer"):
        _written(server)


def test_credentials_that_expire_fail_the_connector_and_no_document(server: CommandedServer) -> None:
    server.answer = _bulk(json.dumps({"items": [WRITTEN, WRITTEN]}).encode())
    assert not _written(server)
    server.answer = lambda _: Answer(401, b'{"error": {"type": "security_exception", "reason": "token expired"}}')
    with pytest.raises(spi.ConnectorFailed, match=r"401: .*token expired.*connection\.password"):
        _written(server)


def test_requests_that_are_under_way_together_are_told_apart(server: CommandedServer) -> None:
    """Each has its own verdicts, wherever it stands among the others."""

    def answer(got: Got) -> Answer:
        documents = [line for line in got.body.splitlines() if b'"a"' in line]
        items = [{"index": {"status": 400 if b"7" in each else 201}} for each in documents]
        return Answer(200, json.dumps({"items": items}).encode())

    server.answer = answer
    config = {"connection.url": server.url, "schema.ignore": "true", "key.ignore": "true", "batch.size": "4"}
    sink = ElasticsearchSink(spi.parse(ElasticsearchConfig, config), "search")
    records = [ConnectRecord("t", 0, key=None, value={"a": offset}, offset=offset) for offset in range(30)]
    try:
        refused = list(sink.write(spi.Batch(records, [spi.Span("t", 0, 0, 30)])))
    finally:
        sink.close()
    assert sorted(each.at for each in refused) == [7, 17, 27]
    assert len([got for got in server.got if "_bulk" in got.path]) == 8
