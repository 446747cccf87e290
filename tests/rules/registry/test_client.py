"""The blocking client against a small server of the test's own, which says what registries say, and worse."""

import json
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ottla.registry.client import RegistryClient, RegistryRefused
from ottla.registry.lookup import Registered, RegistryUnavailable
from ottla.registry.schemas.base import Reference, Resolved

GUID = "89791762-2336-4186-9674-299b90a802e2"
Answer = tuple[int, Any]


@dataclass
class Server:
    url: str = ""
    answers: dict[str, Answer | Callable[[Any], Answer]] = field(default_factory=dict)
    """By method and path."""
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    facts = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
            what = f"{self.command} {self.path}"
            facts.asked.append(what)
            facts.headers.append(dict(self.headers.items()))
            found = facts.answers.get(what, (404, {"error_code": 40403, "message": "Schema not found"}))
            status, answer = found(body) if callable(found) else found
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    facts.url = f"http://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield facts
    listening.shutdown()
    listening.server_close()
    thread.join()


@pytest.fixture
def client(server: Server) -> Iterator[RegistryClient]:
    made = RegistryClient(server.url, timeout_s=5)
    yield made
    made.close()


def test_a_schema_is_found_by_id_and_by_guid_and_asked_for_once(server: Server, client: RegistryClient) -> None:
    answer = {"schema": '"int"', "guid": GUID}
    server.answers = {"GET /schemas/ids/7": (200, answer), f"GET /schemas/guids/{GUID}": (200, answer)}
    assert [client.by_id(7), client.by_id(7)] == [Registered(7, GUID, "AVRO", '"int"')] * 2
    assert [client.by_guid(GUID), client.by_guid(GUID)] == [Registered(0, GUID, "AVRO", '"int"')] * 2
    assert server.asked == ["GET /schemas/ids/7", f"GET /schemas/guids/{GUID}"]


def test_that_there_is_none_is_believed_for_a_while(server: Server, client: RegistryClient) -> None:
    for _ in range(3):
        with pytest.raises(RegistryRefused, match=r"Schema not found \(error code 40403\)") as refused:
            client.by_id(9)
        assert refused.value.code == 40403
    assert server.asked == ["GET /schemas/ids/9"]


def test_references_come_along_each_before_whoever_refers_to_it(server: Server, client: RegistryClient) -> None:
    def refers(*names: str) -> list[dict[str, Any]]:
        return [{"name": name, "subject": f"{name}/s", "version": 1} for name in names]

    def path(name: str) -> str:
        return f"GET /subjects/{name}%2Fs/versions/1?deleted=true"

    server.answers = {
        "GET /schemas/ids/1": (200, {"schema": "top", "guid": GUID, "references": refers("a", "b")}),
        path("a"): (200, {"schema": "A", "references": refers("c")}),
        path("b"): (200, {"schema": "B", "references": refers("c", "a")}),
        path("c"): (200, {"schema": "C"}),
    }
    found = client.by_id(1)
    assert found.references == (Reference("a", "a/s", 1), Reference("b", "b/s", 1))
    assert found.resolved == tuple(Resolved(Reference(name, f"{name}/s", 1), name.upper()) for name in ("c", "a", "b"))
    assert len(server.asked) == 4


def test_references_in_a_ring_come_to_an_end(server: Server, client: RegistryClient) -> None:
    again = [{"name": "a", "subject": "a", "version": 1}]
    server.answers = {
        "GET /schemas/ids/1": (200, {"schema": "top", "references": again}),
        "GET /subjects/a/versions/1?deleted=true": (200, {"schema": "A", "references": again}),
    }
    assert [each.text for each in client.by_id(1).resolved] == ["A"]


def test_registering_and_finding_send_the_schema_and_give_what_the_registry_has(
    server: Server, client: RegistryClient
) -> None:
    bodies = []

    def answer(body: Any) -> Answer:
        bodies.append(body)
        return 200, {"id": 3, "guid": GUID, "version": 1}

    server.answers = {"POST /subjects/t-value/versions": answer, "POST /subjects/t-value": answer}
    references = [Reference("a", "a", 1)]
    server.answers["GET /subjects/a/versions/1?deleted=true"] = 200, {"schema": '"a"'}
    for ask in (client.register, client.find):
        assert ask("t-value", "AVRO", '"int"').id == 3
        ask("t-value", "JSON", "{}", references)
        assert ask("t-value", "AVRO", '"int"').guid == GUID
    assert (
        bodies
        == [
            {"schema": '"int"', "schemaType": "AVRO"},
            {"schema": "{}", "schemaType": "JSON", "references": [{"name": "a", "subject": "a", "version": 1}]},
        ]
        * 2
    )


def test_a_registry_that_gives_ids_alone_is_asked_for_the_rest(server: Server, client: RegistryClient) -> None:
    server.answers = {
        "POST /subjects/t-value/versions": (200, {"id": 3}),
        "GET /schemas/ids/3": (200, {"schema": '"int"'}),
    }
    assert client.register("t-value", "AVRO", '"int"') == Registered(3, "", "AVRO", '"int"')


def test_the_latest_is_asked_for_every_time(server: Server, client: RegistryClient) -> None:
    server.answers = {"GET /subjects/s/versions/latest": (200, {"id": 1, "schema": "1"})}
    assert client.latest("s").id == 1
    server.answers = {"GET /subjects/s/versions/latest": (200, {"id": 2, "schema": "2"})}
    assert client.latest("s").id == 2


def test_a_context_is_meant_everywhere(server: Server) -> None:
    client = RegistryClient(server.url, context=".eu")
    server.answers = {
        "GET /schemas/ids/1?subject=%3A.eu%3A": (200, {"schema": "x"}),
        "GET /subjects/%3A.eu%3As/versions/latest": (200, {"id": 1, "schema": "x"}),
    }
    assert client.by_id(1).text == client.latest("s").text == "x"
    client.close()


AUTHORIZED = [({"user": "ann", "password": "secret"}, "Basic YW5uOnNlY3JldA=="), ({"token": "abc"}, "Bearer abc")]


@pytest.mark.parametrize(("credentials", "header"), AUTHORIZED)
def test_it_says_who_asks_and_shows_no_secret(server: Server, credentials: dict[str, str], header: str) -> None:
    client = RegistryClient(server.url, **credentials)  # type: ignore[arg-type]
    server.answers = {"GET /schemas/ids/1": (200, {"schema": "x"})}
    client.by_id(1)
    client.close()
    assert server.headers[0]["Authorization"] == header
    assert not any(secret in f"{client!r}{client.__getstate__()!r}" for secret in ("secret", "abc"))


def test_of_several_addresses_the_first_that_answers_is_taken(server: Server) -> None:
    client = RegistryClient("http://127.0.0.1:9", server.url)
    server.answers = {"GET /schemas/ids/1": (200, {"schema": "x"})}
    assert client.by_id(1).text == "x"
    client.close()


def test_a_connection_that_was_closed_meanwhile_is_made_anew(server: Server, client: RegistryClient) -> None:
    server.answers = {"GET /schemas/ids/1": (200, {"schema": "1"}), "GET /schemas/ids/2": (200, {"schema": "2"})}
    client.by_id(1)
    (line,) = client._lines
    assert line._connection is not None and line._connection.sock is not None
    line._connection.sock.shutdown(2)
    assert client.by_id(2).text == "2"


BROKEN: list[Answer] = [
    (500, {"error_code": 50001, "message": "store"}),
    (200, b"<html>"),
    (200, []),
    (401, {}),
    (404, b"nothing here"),
]


@pytest.mark.parametrize("answer", BROKEN)
def test_an_answer_that_is_none_says_nothing_of_the_schema(
    server: Server, client: RegistryClient, answer: Answer
) -> None:
    server.answers = {"GET /schemas/ids/1": answer}
    with pytest.raises(RegistryUnavailable):
        client.by_id(1)
    server.answers = {"GET /schemas/ids/1": (200, {"schema": "x"})}
    assert client.by_id(1).text == "x"


def test_nobody_there_is_told_with_the_address() -> None:
    with pytest.raises(RegistryUnavailable, match=r"http://127\.0\.0\.1:9: "):
        RegistryClient("http://127.0.0.1:9", timeout_s=0.1).by_id(1)


def test_it_travels_with_its_settings(server: Server, client: RegistryClient) -> None:
    server.answers = {"GET /schemas/ids/1": (200, {"schema": "x"})}
    client.by_id(1)
    copy = pickle.loads(pickle.dumps(client))
    assert copy == client != RegistryClient("http://127.0.0.1:1")
    assert copy.by_id(1).text == "x"
    copy.close()


@pytest.mark.parametrize("urls", [(), ("localhost:8081",), ("ftp://a",)])
def test_an_address_that_is_none_is_refused(urls: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"http://(host:port|HOST:PORT) or https"):
        RegistryClient(*urls)
