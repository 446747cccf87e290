"""Apache's Java clients behind every way to log in: written, committed and aborted in transactions, read in a group,
over TLS, and logged in again every few seconds where there is a login."""

import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.security import security
from ottla.client.tokens import create_token
from ottla.model.properties.jaas import OAUTH_MODULE, SCRAM_MODULE, jaas_text
from ottla.testing import Cluster
from ottla.testing.rights import EVERYTHING
from ottla.testing.security import as_java
from tests.support.bearer import AUDIENCE, ISSUER, Issuer, KeyServer
from tests.support.certificates import as_pkcs12, issued
from tests.support.clients.foreign import apache_java
from tests.wire import test_secured_day as day_of
from tests.wire.test_secured_day import LOGIN_MS, Day, Settings, at_work
from tests.wire.test_secured_day_elsewhere import roles, working
from tests.wire.test_tls import of_nodes, stores

pytestmark = [pytest.mark.jvm, pytest.mark.matrix]

ISSUED = Issuer(kind="RSA")
LOGINS = 3
"""And more, of each client."""


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with KeyServer(ISSUED) as keys:
        settings: dict[str, Any] = {
            "num.partitions": 3,  # of the topics, which the clients make
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.url,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "delegation.token.secret.key": "shared",
            "connections.max.reauth.ms": LOGIN_MS,
        }
        with Cluster(security="SASL_SSL", **settings) as kafka:
            yield kafka


def plain(kafka: Cluster, folder: Path) -> Settings:
    return as_java(kafka.admin)


def scram(kafka: Cluster, folder: Path) -> Settings:
    return as_java(kafka.user("alice"))


def token(kafka: Cluster, folder: Path) -> Settings:
    alice = as_java(kafka.user("alice"))
    with Client(parse_bootstrap(kafka.bootstrap_servers), security=security(alice)) as client:
        made = create_token(client)
    jaas = jaas_text(SCRAM_MODULE, username=made.id, password=b64encode(made.hmac).decode(), tokenauth="true")
    return {**alice, "sasl.jaas.config": jaas}


def bearer(kafka: Cluster, folder: Path) -> Settings:
    (folder / "token").write_text(ISSUED.token("tina"))
    kafka.allow("tina", *EVERYTHING)
    return {
        **as_java(kafka.admin),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": (folder / "token").as_uri(),
        "sasl.login.callback.handler.class": f"{OAUTH_MODULE.rpartition('.')[0]}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": jaas_text(OAUTH_MODULE),
    }


def command(role: str, settings: Settings, file: Path) -> list[str]:
    """The file with a token has to be allowed by a system property."""
    allowed = settings.get("sasl.oauthbearer.token.endpoint.url", "")
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    java, *rest = apache_java("Day")
    return [java, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}", *rest, str(file), role]


def works(kafka: Cluster, settings: Settings, folder: Path, patched: pytest.MonkeyPatch, seconds: float) -> None:
    apache_java("Day")
    writers = {name: working(command, role, folder) for name, role in roles("java", "writes", "transacts")}
    readers = {name: working(command, role, folder) for name, role in roles("java", "reads")}
    patched.setattr(day_of, "WRITERS", writers)
    patched.setattr(day_of, "READERS", readers)
    day = Day()
    with at_work(day, {**settings, "bootstrap.servers": kafka.bootstrap_servers}, ("java",)):
        day.goes_on()
        began = time.monotonic()
        while time.monotonic() - began < seconds or not day.aborted:
            day.goes_on()
        day.reads_all()
    day.went_well()


@pytest.mark.parametrize("login", [plain, scram, token, bearer], ids=lambda each: each.__name__)
def test_java_writes_transacts_and_reads_in_a_group_by_every_login(
    kafka: Cluster, login: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works(kafka, login(kafka, tmp_path), tmp_path, monkeypatch, LOGINS * LOGIN_MS / 1000)


def test_java_writes_transacts_and_reads_in_a_group_by_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores(tmp_path)
    alice = tmp_path / "alice.p12"
    alice.write_bytes(as_pkcs12(issued("alice@example.org", common_name="alice"), "secret"))
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(alice),
        "ssl.keystore.password": "secret",
        "ssl.key.password": "secret",
    }
    with Cluster(**of_nodes(tmp_path, ssl_client_auth="required", num_partitions="3")) as kafka:
        works(kafka, settings, tmp_path, monkeypatch, 0)
