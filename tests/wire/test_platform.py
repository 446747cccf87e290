"""The platform beside a node: ports that are there at once, a process behind them that comes and comes back."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ottla.testing import Cluster
from tests.support.certificates import authority_file, issued, written
from tests.support.nodes import Ottla, free_ports
from tests.support.patience import PATIENCE_SECONDS, eventually

FILE_SINK = {"connector.class": "FileStreamSink", "topics": "t", "file": "/dev/null"}
SCHEMA = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'


def beside(port: int, **more: str) -> dict[str, str]:
    return {"registry.listeners": f"http://127.0.0.1:{port}", **more}


def get(url: str) -> object:
    with urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


def register(url: str, subject: str) -> int:
    body = json.dumps({"schema": SCHEMA}).encode()
    headers = {"content-type": "application/vnd.schemaregistry.v1+json"}
    request = Request(f"{url}/subjects/{subject}/versions", body, headers)
    with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        number: int = json.load(answer)["id"]
        return number


def topics_of(node: Ottla) -> list[str]:
    return sorted(AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=PATIENCE_SECONDS).topics)


def platform_of(node: Ottla) -> list[int]:
    """The processes that are its children."""
    assert node.process is not None
    threads = Path(f"/proc/{node.process.pid}/task").glob("*/children")
    return [int(word) for thread in threads for word in thread.read_text().split()]


def test_the_process_comes_with_the_first_request_and_goes_with_the_node(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Ottla(tmp_path, extra=beside(port)) as node:
        eventually(lambda: f"registry http://127.0.0.1:{port}" in node.printed())
        assert platform_of(node) == []
        assert get(f"http://127.0.0.1:{port}/subjects") == []
        (process,) = platform_of(node)
        assert node.stop() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_registry_that_is_killed_comes_back_with_the_next_request(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with Ottla(tmp_path, extra=beside(port)) as node:
        assert register(url, "orders-value") == 1
        (process,) = platform_of(node)
        os.kill(process, signal.SIGKILL)
        eventually(lambda: "the platform's process ended with -9" in node.printed())
        assert get(f"{url}/subjects") == ["orders-value"]
        assert register(url, "others-value") == 1  # the same schema has the same id
        assert node.stop() == 0


def test_a_port_that_is_taken_costs_the_registry_and_not_the_node(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Ottla(tmp_path, extra=beside(port)) as node:
            sentence = f"no registry: cannot listen on 127.0.0.1:{port}: another process does."
            assert sentence in node.printed()
            assert "registry.listeners" in node.printed()
            assert node.stop() == 0


def test_what_cannot_be_mended_by_waiting_closes_the_port_and_says_why(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Ottla(tmp_path, extra=beside(port)) as node:
        created = subprocess.run(
            [sys.executable, "-m", "ottla", "topics", "create", "_schemas", "-b", node.bootstrap],
            capture_output=True,
            text=True,
            check=False,
        )
        assert created.returncode == 0, created.stderr
        with pytest.raises((URLError, ConnectionError)):
            get(f"http://127.0.0.1:{port}/subjects")
        eventually(lambda: "no registry: " in node.printed())
        assert "compact" in node.printed()
        assert node.stop() == 0


def test_a_setting_of_the_registry_that_is_misspelt_is_refused_at_the_start(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    node = Ottla(tmp_path, extra=beside(port, **{"registry.schema.compatibility.levl": "full"}))
    with pytest.raises(AssertionError, match=r"did you mean schema\.compatibility\.level"):
        node.start()


def test_settings_of_the_registry_stand_in_the_nodes_file(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Ottla(tmp_path, extra=beside(port, **{"registry.schema.compatibility.level": "full"})) as node:
        assert get(f"http://127.0.0.1:{port}/config") == {"compatibilityLevel": "FULL"}
        assert node.stop() == 0


def test_a_registry_beside_a_node_has_a_certificate_and_users(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    users = tmp_path / "users"
    made = subprocess.run(
        [sys.executable, "-m", "ottla", "users", "hash", "ann"],
        input="ann-secret\n",
        capture_output=True,
        text=True,
        check=True,
    )
    users.write_text(made.stdout)
    settings = {
        "registry.listeners": f"https://127.0.0.1:{port}",
        "registry.ssl.keystore.type": "PEM",
        "registry.ssl.keystore.location": str(written(tmp_path, issued(), "registry")),
        "registry.authentication.method": "BASIC",
        "registry.users.file": str(users),
    }
    with Ottla(tmp_path, extra=settings) as node:
        trusting = {"url": f"https://127.0.0.1:{port}", "ssl.ca.location": str(authority_file(tmp_path))}
        with SchemaRegistryClient({**trusting, "basic.auth.user.info": "ann:ann-secret"}) as client:
            assert client.register_schema("orders-value", Schema(SCHEMA, "AVRO")) == 1
        eventually(lambda: "principal=User:ann host=127.0.0.1 action=register subject=orders-value" in node.printed())
        with SchemaRegistryClient(trusting) as nobody, pytest.raises(SchemaRegistryError) as refused:
            nobody.get_subjects()
        assert refused.value.http_status_code == 401
        assert "secret" not in node.printed()
        assert node.stop() == 0


def test_a_certificate_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {
        "registry.listeners": f"https://127.0.0.1:{port}",
        "registry.ssl.keystore.type": "PEM",
        "registry.ssl.keystore.location": str(tmp_path / "none.pem"),
    }
    with pytest.raises(AssertionError, match=r"ssl\.keystore\.location: .*none\.pem"):
        Ottla(tmp_path, extra=settings).start()


def test_a_registry_by_itself_serves_any_cluster(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    file = tmp_path / "schema-registry.properties"
    with Cluster() as kafka:
        file.write_text(
            f"listeners=http://127.0.0.1:{port}\nkafkastore.bootstrap.servers=PLAINTEXT://{kafka.bootstrap_servers}\n"
            "kafkastore.topic=_schemas\ndebug=false\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "registry", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with process:
            assert process.stdout is not None
            assert b"a schema registry is ready" in process.stdout.readline()
            assert register(f"http://127.0.0.1:{port}", "orders-value") == 1
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
        assert b"not used, since no setting of a registry has such a name: debug" in told


def test_a_cluster_for_tests_has_a_registry_that_is_empty_after_a_reset() -> None:
    with Cluster(registry=True) as kafka:
        client = SchemaRegistryClient({"url": kafka.schema_registry_url})
        assert client.register_schema("orders-value", Schema(SCHEMA, "AVRO")) == 1
        kafka.reset()
        assert kafka.schema_registry_url in (client._rest_client.base_urls)  # the same address as before
        assert client.get_subjects() == []
        with pytest.raises(HTTPError, match="404"):
            get(f"{kafka.schema_registry_url}/subjects/orders-value/versions")


def test_the_fixture_of_a_registry_is_an_empty_one_beside_kafka(kafka: Cluster, schema_registry: str) -> None:
    with SchemaRegistryClient({"url": schema_registry}) as client:
        assert client.get_subjects() == []
        assert client.register_schema("orders-value", Schema(SCHEMA, "AVRO")) == 1
    assert any(b'"subject":"orders-value"' in (record.key or b"") for record in kafka.consume("_schemas"))


def test_connect_comes_with_its_first_request_and_then_with_the_node(tmp_path: Path) -> None:
    registry, connect = free_ports(2)
    listeners = {"connect.listeners": f"http://127.0.0.1:{connect}"}
    body = {"name": "c", "config": FILE_SINK, "initial_state": "PAUSED"}
    with Ottla(tmp_path, extra=beside(registry, **listeners)) as node:
        assert get(f"http://127.0.0.1:{registry}/subjects") == []
        # The registry's process does not start what nobody asked for.
        assert [topic for topic in topics_of(node) if not topic.startswith("__")] == ["_schemas"]
        request = Request(
            f"http://127.0.0.1:{connect}/connectors", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 201
        assert node.stop() == 0
    with Ottla(tmp_path, extra=beside(registry, **listeners)) as node:
        eventually(lambda: len(platform_of(node)) == 1)  # connectors run, whether anybody asks or not
        assert get(f"http://127.0.0.1:{connect}/connectors") == ["c"]
        (process,) = platform_of(node)
        os.kill(process, signal.SIGKILL)
        eventually(lambda: platform_of(node) not in ([], [process]))
        assert get(f"http://127.0.0.1:{connect}/connectors") == ["c"]
        assert node.stop() == 0
