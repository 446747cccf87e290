"""Tokens for our own logins: from a file or an endpoint, kept for a while, bounded; what is said tells no secret."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ottla.model.properties.jaas import parse_jaas
from ottla.model.properties.sasl import is_safe
from ottla.net.token_endpoint import CLIENT_ID, CLIENT_SECRET, SCOPE, URL, TokenEndpoint, Tokens, endpoint_of
from ottla.security.sasl.speaker import LoginRefused


class Answering:
    def __init__(self) -> None:
        self.answer = b'{"access_token":"a.b.c","expires_in":100}'
        self.status = 200
        self.requests = 0
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.requests += 1
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(told.status)
                if told.status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/")
                self.end_headers()
                self.wfile.write(told.answer)

            def log_message(self, format: str, *args: object) -> None:
                """Not to the test's output."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/token"


@pytest.fixture
def endpoint() -> Iterator[Answering]:
    answering = Answering()
    thread = threading.Thread(target=answering.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield answering
    answering.http.shutdown()
    answering.http.server_close()
    thread.join()


def test_a_token_is_kept_for_four_fifths_of_its_life(endpoint: Answering) -> None:
    now = [1000.0]
    tokens = Tokens(TokenEndpoint(endpoint.url, "me", "secret"), lambda: now[0])
    assert [tokens.token(), tokens.token(), endpoint.requests] == [b"a.b.c", b"a.b.c", 1]
    now[0] += 79
    assert (tokens.token(), endpoint.requests) == (b"a.b.c", 1)
    now[0] += 2
    assert (tokens.token(), endpoint.requests) == (b"a.b.c", 2)


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        (401, b"{}", "401"),
        (302, b"{}", "302"),
        (200, b"nonsense", "no JSON with an access_token"),
        (200, b"[]", "no JSON with an access_token"),
        (200, b"[" * 100_000, "no JSON with an access_token"),
        (200, b'{"access_token":7}', "is no token"),
        (200, b'{"access_token":"a b"}', "is no token"),
        (200, b'{"access_token":""}', "is no token"),
        (200, b'{"access_token":"a","expires_in":"soon"}', "no JSON with an access_token"),
        (200, b" " * ((1 << 20) + 1), "larger than 1048576 bytes"),
    ],
)
def test_what_is_no_token_is_refused_without_telling_a_secret(
    endpoint: Answering, status: int, answer: bytes, told: str
) -> None:
    endpoint.status, endpoint.answer = status, answer
    refused = Tokens(TokenEndpoint(endpoint.url, "me", "hush")).token()
    assert isinstance(refused, LoginRefused)
    assert told in str(refused)
    assert "hush" not in str(refused)


def test_an_endpoint_that_is_not_there_is_said() -> None:
    refused = Tokens(TokenEndpoint("http://127.0.0.1:1/", "me", "hush")).token()
    assert isinstance(refused, LoginRefused)
    assert "no token is to be had from http://127.0.0.1:1/" in str(refused)


def test_a_file_is_read_anew_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    tokens = Tokens(TokenEndpoint(file.as_uri()))
    assert tokens.token() == b"first"
    file.write_text("second")
    assert tokens.token() == b"second"


def test_settings_win_over_the_jaas_text() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    jaas = parse_jaas(f'{module} required clientId="old" clientSecret="s1" scope="read";')
    url = {URL: "https://login.example/token"}
    assert endpoint_of(url.get, jaas) == TokenEndpoint(url[URL], "old", "s1", "read")
    new = {**url, CLIENT_ID: "new", CLIENT_SECRET: "s2", SCOPE: "all"}
    assert endpoint_of(new.get, jaas) == TokenEndpoint(url[URL], "new", "s2", "all")
    assert "s2" not in repr(endpoint_of(new.get, jaas))


def test_kafkas_timeout_holds_for_tokens_too() -> None:
    given = {URL: "https://login.example/token", CLIENT_ID: "a", CLIENT_SECRET: "b"}
    timeout = "sasl.login.read.timeout.ms"
    assert endpoint_of(given.get, None).timeout_s == 10
    assert endpoint_of({**given, timeout: "2500"}.get, None).timeout_s == 2.5
    with pytest.raises(ValueError, match=r"sasl\.login\.read\.timeout\.ms: a number of milliseconds is expected"):
        endpoint_of({**given, timeout: "soon"}.get, None)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "a value is needed to log in by OAUTHBEARER"),
        ({URL: "http://login.example/"}, "is not allowed"),
        ({URL: "https://login.example/"}, f"{CLIENT_ID}: with {CLIENT_SECRET}"),
    ],
)
def test_what_is_missing_is_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told.replace(".", r"\.")):
        endpoint_of(given.get, None)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://login.example/keys", True),
        ("http://127.0.0.1:8080/keys", True),
        ("http://[::1]/keys", True),
        ("file:///etc/token", True),
        ("http://127.0.0.1.evil.example/keys", False),
        ("http://localhost@evil.example/keys", False),
        ("http://login.example/", False),
        ("https:///keys", False),
        ("file://host/token", False),
        ("ftp://127.0.0.1/", False),
        ("http://[", False),
    ],
)
def test_keys_and_tokens_come_by_ways_that_nobody_can_listen_to(url: str, safe: bool) -> None:
    assert is_safe(url) == safe
