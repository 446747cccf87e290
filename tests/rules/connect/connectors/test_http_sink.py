"""The HTTP sink against a real server that fails on command."""

import hashlib
import hmac
import json
from collections.abc import Iterator

import pytest

from ottla.connect import spi
from ottla.connect.connectors.http_sink import HttpSink
from ottla.testing import connect
from tests.platform.systems.http_server import Answer, CommandedServer, Got, commanded_server

ALL = {"errors.tolerance": "all"}


@pytest.fixture
def server() -> Iterator[CommandedServer]:
    with commanded_server() as found:
        yield found


def test_each_record_is_a_request_with_its_place_as_key(server: CommandedServer) -> None:
    connect(HttpSink, {"http.api.url": f"{server.url}/${{topic}}"}, [{"n": 1}, {"n": 2}], topic="orders")
    assert [(got.path, got.body, got.headers["idempotency-key"]) for got in server.taken] == [
        ("/orders", b'{"n":1}', "orders-0-0"),
        ("/orders", b'{"n":2}', "orders-0-1"),
    ]


def test_several_records_are_a_list(server: CommandedServer) -> None:
    connect(HttpSink, {"http.api.url": server.url, "batch.max.size": 2}, [{"n": n} for n in range(3)])
    assert [json.loads(got.body) for got in server.taken] == [[{"n": 0}, {"n": 1}], {"n": 2}]


@pytest.mark.parametrize(
    "trouble",
    [
        Answer(503),
        Answer(429, headers={"Retry-After": "0"}),
        Answer(hang_up=True),
        Answer(silent=True),
    ],
    ids=["busy", "too many", "hangs up", "says nothing"],
)
def test_what_may_pass_is_tried_again_and_nothing_is_sent_twice_that_was_taken(
    server: CommandedServer, trouble: Answer
) -> None:
    hits = iter([Answer(), trouble])
    server.answer = lambda _: next(hits, Answer())
    connect(HttpSink, {"http.api.url": server.url, "request.timeout.ms": 500}, [{"n": 1}, {"n": 2}, {"n": 3}])
    assert [json.loads(got.body) for got in server.taken] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_an_answer_whose_end_is_missing_is_known_by_its_status(server: CommandedServer) -> None:
    server.answer = lambda _: Answer(body=b"half of this", cut=6)
    connect(HttpSink, {"http.api.url": server.url}, [{"n": 1}, {"n": 2}])
    assert [json.loads(got.body) for got in server.got] == [{"n": 1}, {"n": 2}]


def test_a_record_that_is_refused_is_a_letter_with_the_answer_and_the_others_go_on(server: CommandedServer) -> None:
    server.answer = lambda got: Answer(422, b"no such thing") if b"bad" in got.body else Answer()
    tried = connect(HttpSink, {"http.api.url": server.url, **ALL}, [{"n": 1}, {"bad": 2}, {"n": 3}])
    assert [(letter.offset, letter.value, letter.failure.stage) for letter in tried.letters] == [
        (1, b'{"bad": 2}', "TASK_PUT")
    ]
    assert tried.letters[0].failure.message == "the server answered 422: no such thing"
    assert [json.loads(got.body) for got in server.taken] == [{"n": 1}, {"n": 3}]


def test_a_batch_that_is_refused_is_sent_record_by_record_to_find_out_which(server: CommandedServer) -> None:
    server.answer = lambda got: Answer(400) if b"bad" in got.body else Answer()
    config = {"http.api.url": server.url, "batch.max.size": 10, **ALL}
    tried = connect(HttpSink, config, [{"n": 1}, {"bad": 2}, {"n": 3}])
    assert [letter.offset for letter in tried.letters] == [1]
    assert [json.loads(got.body) for got in server.taken] == [{"n": 1}, {"n": 3}]


def test_credentials_that_are_no_good_fail_the_connector_and_no_record(server: CommandedServer) -> None:
    server.answer = lambda _: Answer(401, b"who are you?")
    with pytest.raises(AssertionError, match=r"Credentials .* have to be mended"):
        connect(HttpSink, {"http.api.url": server.url, **ALL}, [{"n": 1}])


def test_a_token_is_fetched_by_client_credentials_once_and_anew_when_it_is_taken_back(server: CommandedServer) -> None:
    good = ["first"]

    def answer(got: Got) -> Answer:
        if got.path == "/token":
            assert got.body == b"grant_type=client_credentials&scope=write"
            return Answer(body=json.dumps({"access_token": good[0], "expires_in": 3600}).encode())
        if b'"n":2' in got.body and good == ["first"]:
            good[0] = "second"
            return Answer(401)
        return Answer() if got.headers["authorization"] == f"Bearer {good[0]}" else Answer(401)

    server.answer = answer
    config = {
        "http.api.url": f"{server.url}/in",
        "auth.type": "oauth2",
        "oauth2.token.url": f"{server.url}/token",
        "oauth2.client.id": "me",
        "oauth2.client.secret": "s3cret",
        "oauth2.client.scope": "write",
    }
    connect(HttpSink, config, [{"n": 1}, {"n": 2}, {"n": 3}])
    assert [got.path for got in server.got] == ["/token", "/in", "/in", "/token", "/in", "/in"]


def test_bodies_are_signed(server: CommandedServer) -> None:
    connect(HttpSink, {"http.api.url": server.url, "auth.type": "hmac", "hmac.secret": "key"}, [{"n": 1}])
    (got,) = server.taken
    assert got.headers["x-signature"] == f"sha256={hmac.new(b'key', got.body, hashlib.sha256).hexdigest()}"


@pytest.mark.parametrize(("behaviour", "taken", "letters"), [("ignore", 1, 0), ("fail", 1, 1), ("send", 2, 0)])
def test_records_without_a_value(server: CommandedServer, behaviour: str, taken: int, letters: int) -> None:
    tried = connect(HttpSink, {"http.api.url": server.url, "behavior.on.null.values": behaviour, **ALL}, [None, {}])
    assert (len(server.taken), len(tried.letters)) == (taken, letters)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"http.api.url": "nowhere"}, "http.api.url: nowhere is no address"),
        ({"http.api.url": "http://x", "auth.type": "bearer"}, "auth.bearer.token: is needed for auth.type=bearer"),
        ({"http.api.url": "http://x", "retry.on.status.codes": "abc"}, "retry.on.status.codes"),
    ],
)
def test_a_config_that_is_no_good_is_refused_with_its_reason(given: dict[str, str], reason: str) -> None:
    with pytest.raises(spi.ConfigRefused, match=reason):
        connect(HttpSink, given, [1])
