"""Bad input on listeners with TLS and logins: Kafka's code or a clean close, never a traceback or a secret in the log
at any level, never memory, and others are served all the while.

The node is a process of its own, so that its memory and all that it prints can be seen; it tells everything it can.
"""

import base64
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from struct import pack

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ottla.model.errors import Errors
from ottla.model.properties.jaas import PLAIN_MODULE, SCRAM_MODULE, jaas_text
from ottla.protocol import messages as m
from ottla.protocol.apis import API
from ottla.protocol.frames import RequestHeader, encode_request
from tests.support.certificates import authority, authority_file, client_context, issued, written
from tests.support.examples import examples
from tests.support.nodes import Ottla, free_ports, resident_bytes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.requests import batch, create_topic, fetch, produced
from tests.support.sasl import handshake, plain, scram_login
from tests.support.wire import Closed, Wire

SECRET = "pa55-of-alice"
GROWTH_LIMIT = 100 << 20
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Node(Ottla):
    """PLAINTEXT for a bystander, SASL_PLAINTEXT for logins, SSL for certificates."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.logins, self.encrypted, controllers = free_ports(3)
        places = {"PLAINTEXT": self.port, "SASL_PLAINTEXT": self.logins, "SSL": self.encrypted}
        clients = ",".join(f"{name}://127.0.0.1:{port}" for name, port in places.items())
        keys = folder / "keys.json"
        keys.write_text(json.dumps({"keys": []}))
        more = {
            "listeners": f"{clients},CONTROLLER://127.0.0.1:{controllers}",
            "advertised.listeners": clients,
            "controller.quorum.voters": f"1@127.0.0.1:{controllers}",
            "listener.security.protocol.map": ",".join(f"{each}:{each}" for each in places) + ",CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(written(folder, issued(), "node")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority_file(folder)),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas_text(PLAIN_MODULE, user_alice=SECRET),
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": jaas_text(SCRAM_MODULE),
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": jaas_text(SCRAM_MODULE),
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": "https://issuer.example",
            "sasl.oauthbearer.expected.audience": "kafka",
            "connection.failed.authentication.delay.ms": "0",
            "ottla.connection.creation.rate.per.ip": "100000",
            "ottla.log.level": "DEBUG",
        }
        with self.properties.open("a") as file:
            file.write("".join(f"{name}={text}\n" for name, text in more.items()))


class Target:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.bystander = Wire(node.bootstrap)
        create_topic(self.bystander, "bystander")
        assert node.process is not None
        self._pid = node.process.pid
        self._written = 0
        self._before = resident_bytes(self._pid)

    def login(self) -> Wire:
        return Wire(f"127.0.0.1:{self.node.logins}")

    def is_well(self) -> None:
        assert produced(self.bystander, "bystander", batch(1)) == self._written
        assert fetch(self.bystander, "bystander", self._written).error_code == 0
        self._written += 1
        printed = self.node.printed()
        assert "Traceback" not in printed, printed[printed.index("Traceback") :][:5000]
        assert SECRET not in printed
        assert resident_bytes(self._pid) - self._before < GROWTH_LIMIT


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Node(tmp_path_factory.mktemp("secured")) as node:
        target = Target(node)
        yield target
        target.bystander.__exit__(None, None, None)
        assert node.process is not None and node.process.poll() is None, node.printed()


# ---- SASL


def jwt(header: object, claims: object, signature: bytes = b"") -> bytes:
    parts = [json.dumps(each).encode() for each in (header, claims)]
    return b".".join(base64.urlsafe_b64encode(each).rstrip(b"=") for each in (*parts, signature))


def bearer(token: bytes) -> bytes:
    return b"n,,\x01auth=Bearer %s\x01\x01" % token


CLAIMS = {"sub": "alice", "iss": "https://issuer.example", "aud": "kafka", "exp": 4_000_000_000, "iat": 1}
TOKENS = {
    "PLAIN": (plain("alice", SECRET + "x"), b"\0alice\0", b"\0\0" + SECRET.encode(), f"bob\0alice\0{SECRET}".encode()),
    "SCRAM-SHA-256": (b"n,,n=alice,r=abc", b"n,a=bob,n=alice,r=abc", b"y,,n=alice,r=abc", b"p=tls-unique,,n=a,r=b"),
    "SCRAM-SHA-512": (b"n,,n=alice,r=abc,tokenauth=true", b"n,,n=a=2Cb,r=abc", b"n,,n=alice,r=", b"n,,m=x,n=a,r=b"),
    "OAUTHBEARER": (
        bearer(jwt({"alg": "none"}, CLAIMS)),
        bearer(jwt({"alg": "RS256", "kid": "foreign"}, CLAIMS, b"signature")),
        bearer(jwt({"alg": "HS256", "kid": "foreign"}, CLAIMS, b"signature")),
        bearer(jwt({"alg": "RS256"}, {**CLAIMS, "exp": 1}, b"x")),
        bearer(jwt({"alg": "RS256"}, {**CLAIMS, "aud": "another"}, b"x")),
        bearer(b"a.b.c"),
        bearer(b"." * 1000),
    ),
}


def mutated(token: bytes, dice: Random) -> bytes:
    data = bytearray(token)
    match dice.randrange(7):
        case 0:
            del data[dice.randrange(len(data) + 1) :]
        case 1:
            data.insert(dice.randrange(len(data) + 1), 0)
        case 2:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        case 3:
            data[dice.randrange(len(data) + 1) :] = b"\xff\xfe\xc0"
        case 4:
            data *= dice.choice((2, 50, 500))
        case 5:
            data = bytearray(dice.randbytes(dice.choice((0, 1, 40, 70_000, 400_000))))
        case _:
            pass
    return bytes(data)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mutated_logins_let_nobody_in(target: Target, mechanism: str) -> None:
    dice = Random(mechanism)
    for number in range(examples(150)):
        version = dice.choice((0, 1, 1, 1))
        with target.login() as wire, suppress(Closed, ConnectionError):
            assert handshake(wire, mechanism, version).error_code == 0
            for _ in range(2):  # of SCRAM the second is a final; of OAUTHBEARER the acknowledgement
                token = mutated(dice.choice(TOKENS[mechanism]), dice)
                if version == 0:
                    wire.send_bytes(pack(">i", len(token)) + token)
                    wire.receive_frame()
                    continue
                answer = wire.ask(m.SaslAuthenticateRequest(auth_bytes=token), dice.randrange(3))
                assert answer.error_code in (Errors.NONE, Errors.SASL_AUTHENTICATION_FAILED), number
            answer = wire.ask(m.MetadataRequest(topics=[]), 12)
            raise AssertionError(f"somebody was let in by {mechanism}: {answer}")
    target.is_well()


def test_a_final_of_another_login_is_worth_nothing(target: Target) -> None:
    for name in ("alice", "nobody"):
        with target.login() as wire:
            answer = scram_login(wire, name, SECRET)
            assert answer.error_code == Errors.SASL_AUTHENTICATION_FAILED
    target.is_well()


@pytest.mark.parametrize("after_handshake", [False, True])
def test_requests_of_every_key_before_a_login(target: Target, after_handshake: bool) -> None:
    for key, api in API.items():
        if key in (17, 36) or (key == 18 and not after_handshake):
            continue
        for version in {api.min_version, api.max_version}:
            frame = encode_request(RequestHeader(key, version, 7, "eve"), m.request_class(key)())
            with target.login() as wire, suppress(Closed, ConnectionError):
                if after_handshake:
                    handshake(wire)
                wire.send_bytes(frame)
                wire.receive_frame()  # a refusal of its own kind, at most
                wire.receive_frame()
                raise AssertionError(f"{api.name} v{version} left the connection open")
    target.is_well()


def test_lengths_that_lie_before_a_login(target: Target) -> None:
    for size in (-1, -(1 << 31), (1 << 31) - 1, 524_289, 100 << 20):
        with target.login() as wire, suppress(Closed, ConnectionError):
            wire.send_bytes(pack(">i", size) + bytes(100))
            wire.receive_frame()
            raise AssertionError(f"a frame of {size} bytes was waited for")
    target.is_well()


# ---- TLS


def hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_mutated_hellos(target: Target) -> None:
    dice, good = Random("hello"), hello()
    for _ in range(examples(150)):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        data[0] = 0x16 if dice.random() < 0.8 else data[0]  # else it is told from TLS at once
        del data[dice.choice((len(data), dice.randrange(1, len(data)))) :]
        thrown = bytes(data) + dice.randbytes(dice.choice((0, 0, 5000)))
        with (
            socket.create_connection(("127.0.0.1", target.node.encrypted), PATIENCE_SECONDS) as sock,
            suppress(OSError),
        ):
            sock.sendall(thrown)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
    target.is_well()


def certificate(folder: Path, subject: x509.Name, *, days: int = 1) -> Path:
    """Signed by the authority that the node trusts: whatever is in it gets as far as our own reader."""
    signer = serialization.load_pem_private_key(authority().private_key_pem.bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(authority().cert_pem.bytes()).subject
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .sign(signer, hashes.SHA256())
    )
    path = folder / "client.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def shows(target: Target, path: Path) -> bool:
    """Whether the node serves who shows it."""
    context = client_context()
    context.load_cert_chain(path)
    request = encode_request(RequestHeader(18, 0, 1, "c"), m.ApiVersionsRequest())
    with socket.create_connection(("127.0.0.1", target.node.encrypted), timeout=PATIENCE_SECONDS) as sock:
        try:
            with context.wrap_socket(sock, server_hostname="localhost") as secured:
                secured.sendall(request)
                return secured.recv(4) != b""
        except OSError:
            return False


def name(common_name: str, *more: x509.NameAttribute[str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name), *more])


def test_certificates_with_names_of_all_kinds(target: Target, tmp_path: Path) -> None:
    unit = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"{number:064d}") for number in range(300)]
    for subject in (
        name("alice"),
        name("a\0b"),
        name("a\nINFO User:admin is welcome"),
        name(',+"\\<>;#= '),
        name("\u202e\U0001f33b"),
        x509.Name([]),
        name("many", *unit),
    ):
        assert shows(target, certificate(tmp_path, subject)), subject
    assert "\nINFO User:admin" not in target.node.printed()
    target.is_well()


def test_certificates_that_are_no_good(target: Target, tmp_path: Path) -> None:
    assert not shows(target, certificate(tmp_path, name("late"), days=-1))
    own = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    alone = (
        x509.CertificateBuilder(name("x"), name("x"), own.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(own, hashes.SHA256())
    )
    path = tmp_path / "alone.pem"
    private = own.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + alone.public_bytes(serialization.Encoding.PEM))
    assert not shows(target, path)
    target.is_well()
