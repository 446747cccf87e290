"""Stores of a streams application that are not for everybody: the cluster's users and their rights, https."""

import base64
import http.client
import json
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka import Producer

from ottla.streams.app import StreamsApp
from ottla.streams.record import Record
from ottla.streams.serdes import Serdes
from ottla.streams.topology.processor import Processor
from ottla.streams.topology.topology import Stores, Topology
from ottla.streams.views.lookups import QueryableStores
from ottla.streams.views.server import ViewServer
from ottla.testing import Cluster
from ottla.testing.security import as_java
from tests.support.certificates import client_context, issued, written
from tests.support.patience import PATIENCE_SECONDS

NAME = "shop"
OPEN, HIDDEN = f"{NAME}-counts-changelog", f"{NAME}-salaries-changelog"
LOGINS = {
    "queries.authentication.method": "BASIC",
    "queries.login.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
    "super.users": "User:admin",
}


class Nothing(Processor):
    def process(self, record: Record) -> None: ...


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(security="SASL_PLAINTEXT", offsets_topic_num_partitions=1) as cluster:
        cluster.user("reader", "r-secret", may=[f"read topic:{OPEN}"])
        cluster.user("looker", "l-secret", may=[f"describe topic:{OPEN}", "describe cluster"])
        cluster.user("stranger", "s-secret", may=[])
        for topic in (OPEN, HIDDEN, f"{NAME}-input"):
            cluster.create_topic(topic, partitions=1)
        producer = Producer({**cluster.admin, "log_level": 0})
        for topic in (OPEN, HIDDEN):
            producer.produce(topic, struct.pack(">q", 7), b"plums")
        assert producer.flush(PATIENCE_SECONDS) == 0
        yield cluster


class Asked:
    def __init__(self, url: str) -> None:
        self.url = urlsplit(url)

    def __call__(self, user: str, path: str) -> tuple[int, Any]:
        connection = (
            http.client.HTTPSConnection(self.url.netloc, timeout=PATIENCE_SECONDS, context=client_context())
            if self.url.scheme == "https"
            else http.client.HTTPConnection(self.url.netloc, timeout=PATIENCE_SECONDS)
        )
        shown = {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user else {}
        try:
            connection.request("GET", path, headers=shown)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


@contextmanager
def served(kafka: Cluster, folder: Path, settings: dict[str, str]) -> Iterator[Asked]:
    topology = Topology()
    topology.add_source("in", f"{NAME}-input")
    stores = tuple(Stores.key_value(name, Serdes.string, Serdes.long) for name in ("counts", "salaries"))
    topology.add_processor("p", Nothing, "in", stores=stores)
    file = folder / "queries.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    secured = {name: text for name, text in as_java(kafka.admin).items() if name.startswith(("sasl.", "security."))}
    app = StreamsApp(
        NAME,
        topology,
        bootstrap_servers=kafka.bootstrap_servers,
        state_dir=str(folder / "state"),
        **secured,
        **{"application.server.settings.file": str(file)},
    )
    with QueryableStores(app) as views:
        server = ViewServer(app, views)
        asked = Asked(server.start())
        try:
            assert views.wait_until_caught_up(PATIENCE_SECONDS), views.follower.trouble
            yield asked
        finally:
            server.stop()


@pytest.fixture(scope="module")
def asked(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with served(kafka, tmp_path_factory.mktemp("guarded"), LOGINS) as found:
        yield found


READER, LOOKER, STRANGER = "reader:r-secret", "looker:l-secret", "stranger:s-secret"


@pytest.mark.parametrize("user", ["", "reader:wrong", "nobody:x"])
def test_who_does_not_say_who_he_is_is_told_nothing(asked: Asked, user: str) -> None:
    for path in ("/stores", "/stores/counts/all", "/health", "/metrics", "/status", "/openapi.json"):
        assert asked(user, path)[0] == 401, path


def test_who_may_read_the_topic_may_ask_for_its_store(asked: Asked) -> None:
    status, answer = asked(READER, "/stores/counts/keys/plums")
    assert (status, answer.get("value")) == (200, 7), answer


def test_who_may_only_look_at_it_is_told_what_is_missing(asked: Asked) -> None:
    assert asked(LOOKER, "/stores/counts")[0] == 200
    for path in ("keys/plums", "range", "all", "prefix/p", "windows/p", "sessions/p", "versions/p"):
        status, answer = asked(LOOKER, f"/stores/counts/{path}")
        assert status == 403, path
        assert f"ottla acls allow looker read topic:{OPEN} --execute" in answer["message"]


def test_a_store_that_one_may_not_see_is_not_told_from_none(asked: Asked) -> None:
    for path in ("", "/all", "/keys/plums"):
        (hidden, told), (missing, said) = (asked(READER, f"/stores/{name}{path}") for name in ("salaries", "none"))
        assert (hidden, missing) == (404, 404)
        assert told["message"].replace("salaries", "none") == said["message"]
    assert [each["name"] for each in asked(READER, "/stores")[1]["stores"]] == ["counts"]
    assert asked(STRANGER, "/stores")[1]["stores"] == []


def test_what_is_about_the_whole_needs_a_right_on_the_cluster(asked: Asked) -> None:
    assert asked(LOOKER, "/status")[0] == 200
    status, answer = asked(READER, "/status")
    assert status == 403
    assert "ottla acls allow reader describe cluster --execute" in answer["message"]
    assert asked(STRANGER, "/health")[0] == 200, "whoever logs in may know whether it is well"


def test_over_https_by_the_certificate_of_the_file(kafka: Cluster, tmp_path: Path) -> None:
    store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(written(tmp_path, issued(), "queries"))}
    with served(kafka, tmp_path, {**LOGINS, **store}) as asked:
        assert asked.url.scheme == "https"
        assert asked(READER, "/stores/counts/keys/plums")[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            http.client.HTTPSConnection(asked.url.netloc, timeout=PATIENCE_SECONDS).request("GET", "/stores")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"querys.authentication.method": "BASIC"}, "did you mean queries.authentication.method?"),
        ({**LOGINS, "queries.users.file": "u", "queries.authorization.method": "ACL"}, "not of queries.users.file"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.location": "/none"}, "/none: No such file"),
    ],
)
def test_what_cannot_be_is_said_at_the_start(
    kafka: Cluster, tmp_path: Path, settings: dict[str, str], why: str
) -> None:
    with pytest.raises(ValueError, match=r"querys|queries|ssl") as told, served(kafka, tmp_path, settings):
        pass
    assert why in str(told.value)
