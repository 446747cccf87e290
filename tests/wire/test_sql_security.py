"""A SQL server that is not for everybody: https, the cluster's users, and statements that may do what their sender may.

The server itself is a super user of the cluster: what it refuses, it refuses by the rights of who asks."""

import base64
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived

from ottla.registry.doors.users_file import line
from ottla.sql.api.inserts import PATH as INSERTS
from ottla.sql.api.websockets import PATH as WEB_SOCKET
from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.support.certificates import authority_file, client_context, issued, written
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sql_servers import SqlServer

ALICE, BOB = "alice:a-secret", "bob:b-secret"
DECLARED = "CREATE STREAM orders (id INT KEY, plums INT) WITH (kafka_topic='orders', value_format='JSON');"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(security="SASL_PLAINTEXT", offsets_topic_num_partitions=1) as cluster:
        cluster.create_topic("orders")
        cluster.create_topic("secrets")
        cluster.user("alice", "a-secret", may=["read topic:orders", "write topic:orders"])
        cluster.user("bob", "b-secret", may=[])
        yield cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def server(kafka: Cluster, folder: Path) -> Iterator["SafeServer"]:
    store = written(folder, issued(), "sql")
    https = {
        "sql.listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.location": str(store),
        "listeners.https.ssl.truststore.type": "PEM",
        "listeners.https.ssl.truststore.location": str(authority_file(folder)),
        "sql.authentication.method": "BASIC",
        "sql.login.mechanisms": "SCRAM-SHA-256,PLAIN",
    }
    with SafeServer(kafka, https) as found:
        found.done("admin", DECLARED)
        yield found


class SafeServer(SqlServer):
    def __init__(self, kafka: Cluster, settings: dict[str, str]) -> None:
        self.admin = f"{kafka.admin['sasl.username']}:{kafka.admin['sasl.password']}"
        logs_in = {name: text for name, text in as_java(kafka.admin).items() if name.startswith(("sasl.", "security."))}
        super().__init__(kafka.bootstrap_servers, {"super.users": "User:admin", **logs_in, **settings})

    def ask_as(self, user: str, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        parts = urlsplit(self.url)
        connection = (
            http.client.HTTPSConnection(parts.netloc, timeout=PATIENCE_SECONDS, context=client_context())
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_SECONDS)
        )
        who = self.admin if user == "admin" else user
        shown = {"Authorization": f"Basic {base64.b64encode(who.encode()).decode()}"} if who else {}
        try:
            method = "GET" if body is None else "POST"
            connection.request(method, path, None if body is None else json.dumps(body), {**shown, **headers})
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, json.loads(data) if data.startswith((b"[", b"{")) else data
        finally:
            connection.close()

    def done(self, user: str, text: str) -> Any:
        status, said = self.ask_as(user, "/ksql", {"ksql": text})
        assert status == 200, said
        return said

    def refused(self, user: str, text: str) -> str:
        path, body = ("/query", {"ksql": text}) if text.startswith(("SELECT", "PRINT")) else ("/ksql", {"ksql": text})
        status, said = self.ask_as(user, path, body)
        assert (status, said["error_code"]) == (403, 40301), said
        return str(said["message"])


def test_who_does_not_say_who_he_is_is_not_let_in(server: SafeServer) -> None:
    for user in ("", "alice:guessed", "mallory:a-secret"):
        assert server.ask_as(user, "/info", None)[0] == 401
        assert server.ask_as(user, "/ksql", {"ksql": "SHOW STREAMS;"})[0] == 401
    assert server.ask_as(BOB, "/info", None)[0] == 200


def test_a_statement_may_what_its_sender_may(server: SafeServer) -> None:
    server.done(ALICE, "INSERT INTO orders VALUES (1, 7);")
    status, rows = server.ask_as(ALICE, "/query", {"ksql": "SELECT * FROM orders;"})
    assert (status, rows[1]) == (200, {"row": {"columns": [1, 7]}})
    assert server.refused(BOB, "SELECT * FROM orders;") == (
        "User:bob needs READ on topic orders; allow it with: ottla acls allow bob read topic:orders --execute"
    )
    assert "READ on topic orders" in server.refused(BOB, "SELECT * FROM orders EMIT CHANGES LIMIT 1;")
    assert "READ on topic secrets" in server.refused(ALICE, "PRINT 'secrets' LIMIT 1;")
    assert "READ on topic no-such-topic" in server.refused(ALICE, "PRINT 'no-such-topic' LIMIT 1;")
    assert "WRITE on topic orders" in server.refused(BOB, "INSERT INTO orders VALUES (1, 7);")
    assert "READ on topic orders" in server.refused(BOB, "DROP STREAM orders;")


def test_what_makes_something_needs_the_right_to_make_it(server: SafeServer) -> None:
    declared = "CREATE STREAM s (a INT) WITH (kafka_topic='secrets', value_format='JSON');"
    assert "READ on topic secrets" in server.refused(ALICE, declared)
    new = "CREATE STREAM n (a INT) WITH (kafka_topic='new', value_format='JSON', partitions=1);"
    assert "READ on topic new" in server.refused(ALICE, new)
    copied = "CREATE STREAM copied AS SELECT * FROM orders;"
    assert "WRITE on topic COPIED" in server.refused(ALICE, copied)
    assert "DELETE on topic orders" in server.refused(ALICE, "DROP STREAM orders DELETE TOPIC;")
    code = "CREATE FUNCTION twice(a INT) RETURNS INT LANGUAGE PYTHON AS $$\ndef twice(a):\n    return a * 2\n$$;"
    assert "ALTER on the cluster" in server.refused(ALICE, code)


def test_topics_that_may_not_be_known_are_not_there(server: SafeServer) -> None:
    listed = server.done(ALICE, "SHOW TOPICS;")[0]["topics"]
    assert [each["name"] for each in listed] == ["orders"]
    status, said = server.ask_as(ALICE, "/query", {"ksql": "SELECT * FROM secrets;"})
    same = server.ask_as(ALICE, "/query", {"ksql": "SELECT * FROM nothing;"})[1]
    assert (status, said["message"].replace("SECRETS", "NOTHING")) == (400, same["message"])


def test_a_query_of_a_client_is_ended_by_nobody_else(server: SafeServer) -> None:
    parts = urlsplit(server.url)
    following = http.client.HTTPSConnection(parts.netloc, timeout=PATIENCE_SECONDS, context=client_context())
    shown = {"Authorization": f"Basic {base64.b64encode(ALICE.encode()).decode()}"}
    following.request("POST", "/query-stream", json.dumps({"sql": "SELECT * FROM orders EMIT CHANGES;"}), shown)
    query = json.loads(following.getresponse().readline())["queryId"]
    assert server.ask_as(BOB, "/close-query", {"queryId": query})[0] == 403
    assert server.ask_as(BOB, "/ksql", {"ksql": f"TERMINATE `{query}`;"})[0] == 403
    assert server.ask_as(ALICE, "/close-query", {"queryId": query})[0] == 200
    following.close()


def test_other_ways_in_have_the_same_door(server: SafeServer) -> None:
    assert server.ask_as(ALICE, "/heartbeat", {"hostInfo": {"host": "h", "port": 1}, "timestamp": 1})[0] == 403
    upgrade = {
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }  # fmt: skip
    assert server.ask_as("", f"{WEB_SOCKET}?request=%7B%7D", None, **upgrade)[0] == 403
    assert _inserted(server, "", "ORDERS") == b"401"
    assert _inserted(server, BOB, "ORDERS") == b"403"
    assert _inserted(server, ALICE, "ORDERS") == b"200"


def _inserted(server: SafeServer, user: str, target: str) -> bytes:
    """The status of /inserts-stream, over HTTP/2 that was chosen in the handshake."""
    parts = urlsplit(server.url)
    context = client_context()
    context.set_alpn_protocols(["h2"])
    plain = socket.create_connection((parts.hostname, parts.port), PATIENCE_SECONDS)
    with context.wrap_socket(plain, server_hostname=parts.hostname) as line:
        assert line.selected_alpn_protocol() == "h2"
        talk = H2Connection(H2Configuration(header_encoding=None))
        talk.initiate_connection()
        who = [("authorization", f"Basic {base64.b64encode(user.encode()).decode()}")] if user else []
        talk.send_headers(
            1, [(":method", "POST"), (":path", INSERTS), (":scheme", "https"), (":authority", parts.netloc), *who]
        )
        talk.send_data(1, json.dumps({"target": target}).encode() + b"\n", end_stream=True)
        line.sendall(talk.data_to_send())
        while data := line.recv(65536):
            for event in talk.receive_data(data):
                if isinstance(event, ResponseReceived):
                    return bytes(dict(event.headers)[b":status"])
    raise AssertionError("no answer")


def test_the_shell_logs_in_by_the_settings_of_other_tools(server: SafeServer, folder: Path) -> None:
    config = folder / "alice.properties"
    config.write_text(
        f"ssl.truststore.type=PEM\nssl.truststore.location={authority_file(folder)}\nbasic.auth.user.info={ALICE}\n"
    )
    command = [sys.executable, "-m", "ottla", "sql", "--server", server.url, "-e"]
    with_config = {**os.environ, "OTTLA_COMMAND_CONFIG": str(config)}

    def shell(text: str, server_of: str = server.url) -> tuple[int, str]:
        command[-2] = server_of
        ran = subprocess.run(
            [*command, text], env=with_config, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        return ran.returncode, ran.stdout + ran.stderr

    assert shell("SHOW STREAMS;")[0] == 0
    assert "READ on topic secrets" in shell("PRINT 'secrets' LIMIT 1;")[1]
    as_bob = server.url.replace("https://", f"https://{BOB}@")
    assert "User:bob needs READ" in shell("SELECT * FROM orders;", as_bob)[1]


def test_a_certificate_of_another_authority_is_nobody_s(server: SafeServer) -> None:
    parts = urlsplit(server.url)
    with pytest.raises(ssl.SSLError):
        http.client.HTTPSConnection(parts.netloc, timeout=60, context=ssl.create_default_context()).connect()


def test_users_of_a_file_may_do_everything(kafka: Cluster, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(line("ann", "a-secret", os.urandom(16)) + "\n")
    # ksqlDB's own name of the setting.
    given = {"authentication.method": "BASIC", "sql.users.file": str(users), "ksql.service.id": "second_"}
    with SafeServer(kafka, given) as server:
        assert server.ask_as(ALICE, "/info", None)[0] == 401
        assert server.ask_as("ann:a-secret", "/ksql", {"ksql": "SHOW TOPICS;"})[0] == 200


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"sql.listeners": "https://127.0.0.1:0"}, "ssl.keystore"),
        ({"sql.authentication.method": "BASIC", "security.protocol": "PLAINTEXT"}, "needs somebody who knows"),
        ({"sql.authentication.method": "BASIC", "sql.users.file": "/nowhere"}, "/nowhere"),
        ({"sql.authentication.method": "BASIC", "sql.users.file": "/x", "sql.authorization.method": "ACL"}, "ACLs are"),
    ],
)
def test_what_cannot_be_is_said_at_the_start(kafka: Cluster, given: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why), SafeServer(kafka, given):
        pass
