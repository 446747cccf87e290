"""A node as a process: what signals and strangers do to it, and what it says."""

import json
import signal
import socket
import ssl
from contextlib import suppress
from pathlib import Path

from ottla.protocol import messages as m
from tests.support.nodes import Ottla
from tests.support.patience import eventually
from tests.support.requests import create_topic, delete_topic
from tests.support.wire import Wire


def test_kill_3_tells_where_threads_and_tasks_stand_and_the_node_goes_on(tmp_path: Path) -> None:
    with Ottla(tmp_path) as node:
        assert node.process is not None
        node.process.send_signal(signal.SIGQUIT)
        eventually(lambda: 'task "heartbeats":' in node.printed())
        assert 'thread "MainThread":' in node.printed()
        with Wire(node.bootstrap) as wire:
            assert wire.ask(m.MetadataRequest(topics=[]), 12).brokers
        assert node.stop() == 0


def test_a_stop_is_told_with_its_reason_and_its_end(tmp_path: Path) -> None:
    node = Ottla(tmp_path).start()
    assert node.stop() == 0
    first, last = node.printed().splitlines()[-2:]
    assert first.endswith("INFO stopping: SIGTERM was received")
    assert "INFO stopped in " in last


def test_a_log_of_json_has_nothing_else_in_it(tmp_path: Path) -> None:
    node = Ottla(tmp_path, extra={"ottla.log.format": "json", "example.setting": "1"}).start()
    assert node.stop() == 0
    banner = node.printed().index("ottla ")
    lines = [line for line in node.printed()[:banner].splitlines() + node.printed().splitlines() if "{" in line]
    told = [json.loads(line)["message"] for line in lines]
    assert told[0].startswith("not used, since no setting here has such a name: example.setting")
    assert told[-1].startswith("stopped in ")


def test_whoever_speaks_http_is_told_that_this_is_kafka(tmp_path: Path) -> None:
    with Ottla(tmp_path) as node:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", node.port), timeout=60) as client:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = client.makefile("rb").read()
            assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert answer.endswith(b"\r\n\r\nThis port speaks Kafka's protocol, not HTTP.\n")
        eventually(lambda: "it speaks HTTP" in node.printed())
        told = [line for line in node.printed().splitlines() if "HTTP" in line]
    assert len(told) == 1
    assert told[0].endswith("it speaks HTTP to the listener PLAINTEXT, which is for Kafka clients")


def test_tls_on_a_plain_listener_is_told(tmp_path: Path) -> None:
    context = ssl.create_default_context()
    with Ottla(tmp_path) as node:
        with socket.create_connection(("127.0.0.1", node.port), timeout=60) as client, suppress(OSError):
            context.wrap_socket(client, server_hostname="localhost")
        eventually(lambda: "it speaks TLS to the listener PLAINTEXT, which is PLAINTEXT" in node.printed())


def test_topics_that_are_made_and_deleted_are_told(tmp_path: Path) -> None:
    with Ottla(tmp_path) as node:
        with Wire(node.bootstrap) as wire:
            create_topic(wire, "orders", 3)
            eventually(lambda: "INFO 1 topic made, 3 partitions: orders\n" in node.printed())
            delete_topic(wire, "orders")
        eventually(lambda: "INFO 1 topic deleted: orders\n" in node.printed())
