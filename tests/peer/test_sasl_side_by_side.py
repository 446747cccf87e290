"""Logging in, asked of Apache Kafka 4.3.1 and of ottla with the same settings: the same answers, the same ends."""

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.model.properties.jaas import PLAIN_MODULE, SCRAM_MODULE, jaas_text
from ottla.protocol import messages as m
from tests.support.jvm import Tools
from tests.support.nodes import ApacheKafka, Node, Ottla, free_ports
from tests.support.sasl import ADMIN, USERS, authenticate, handshake, make_user, plain, plain_login, scram_login
from tests.support.wire import Closed, Deadline, Wire

pytestmark = pytest.mark.jvm

MECHANISMS = ["PLAIN", "SCRAM-SHA-256"]
SHORT_MS = 1_200
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
SECURITY_RECORDS = (
    "USER_SCRAM_CREDENTIAL_RECORD",
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    "CLIENT_QUOTA_RECORD",
    "DELEGATION_TOKEN_RECORD",
    "ACCESS_CONTROL_ENTRY_RECORD",
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
)


class Pair:
    """The addresses of the listeners on which clients log in: for good, and for a second."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.lasting, self.short = free_ports(2)
        both = ",".join(
            f"{name}://127.0.0.1:{port}" for name, port in (("LASTING", self.lasting), ("SHORT", self.short))
        )
        text = node.properties.read_text()
        text = text.replace("listeners=PLAINTEXT://", f"listeners={both},PLAINTEXT://")
        text = text.replace(
            "CONTROLLER:PLAINTEXT,", "CONTROLLER:PLAINTEXT,LASTING:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT,"
        )
        more = {"sasl.enabled.mechanisms": ",".join(MECHANISMS), "delegation.token.secret.key": "shared"}
        for name in ("lasting", "short"):
            more[f"listener.name.{name}.plain.sasl.jaas.config"] = jaas_text(PLAIN_MODULE, **ADMIN, **USERS)
            more[f"listener.name.{name}.scram-sha-256.sasl.jaas.config"] = jaas_text(SCRAM_MODULE)
        more["listener.name.short.plain.connections.max.reauth.ms"] = str(SHORT_MS)
        node.properties.write_text(text + "".join(f"{name}={value}\n" for name, value in more.items()))

    def wire(self, *, short: bool = False) -> Wire:
        return Wire(f"127.0.0.1:{self.short if short else self.lasting}")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Pair]]:
    found = [
        Pair(Ottla(tmp_path_factory.mktemp("ottla"))),
        Pair(ApacheKafka(tmp_path_factory.mktemp("kafka"))),
    ]
    with found[0].node, found[1].node:
        for pair in found:
            with Wire(pair.node.bootstrap) as admin:
                assert make_user(admin, "sam", "sam-secret") == 0
        yield found


def ending(wire: Wire) -> str:
    """Whether it is still answered."""
    try:
        return "open" if wire.ask(m.MetadataRequest(topics=[])).brokers else "?"
    except (Closed, OSError):
        return "closed"


def told(answer: Any) -> tuple[Any, ...]:
    if isinstance(answer, m.SaslHandshakeResponse):
        return answer.error_code, sorted(answer.mechanisms)
    return answer.error_code, answer.error_message, bytes(answer.auth_bytes), answer.session_lifetime_ms


def plain_as(name: str, password: str) -> Callable[[Wire], Any]:
    return lambda wire: [told(plain_login(wire, name, password)), ending(wire)]


def token(data: bytes, version: int = 2) -> Callable[[Wire], Any]:
    return lambda wire: [told(handshake(wire)), told(authenticate(wire, data, version)), ending(wire)]


def scram_as(name: str, password: str) -> Callable[[Wire], Any]:
    def talk(wire: Wire) -> Any:
        answer = scram_login(wire, name, password)
        return [answer.error_code, answer.error_message, answer.session_lifetime_ms, ending(wire)]

    return talk


def greeted_twice(wire: Wire) -> Any:
    hello = m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    first = wire.ask(hello).error_code
    wire.send(hello)
    return [first, wire.is_closed_by_peer()]


def strange_greeting(wire: Wire) -> Any:
    wire.send_frame(b"\0\x12\0\x63\0\0\0\x01\xff\xff\0")
    return [wire.receive(18, 0).error_code, told(plain_login(wire)), ending(wire)]


def bad_software(wire: Wire) -> Any:
    answer = wire.ask(m.ApiVersionsRequest(client_software_name="", client_software_version=""))
    return [answer.error_code, told(plain_login(wire)), ending(wire)]


def bare(wire: Wire) -> Any:
    first = told(handshake(wire, "PLAIN", 0))
    wire.send_frame(plain("alice", "alice-secret"))
    return [first, wire.receive_frame(), ending(wire)]


def bare_and_wrong(wire: Wire) -> Any:
    first = told(handshake(wire, "PLAIN", 0))
    wire.send_frame(plain("alice", "wrong"))
    return [first, wire.is_closed_by_peer()]


def out_of_place(request: Any, version: int) -> Callable[[Wire], Any]:
    def talk(wire: Wire) -> Any:
        wire.send(request, version)
        return wire.is_closed_by_peer()

    return talk


def behind_the_handshake(wire: Wire) -> Any:
    handshake(wire)
    topic = m.MetadataRequest.MetadataRequestTopic(name="t")
    answer = wire.ask(m.MetadataRequest(topics=[topic]), 12)
    return [[each.error_code for each in answer.topics], wire.is_closed_by_peer()]


def logged_in_already(wire: Wire) -> Any:
    plain_login(wire)
    again = wire.ask(m.SaslHandshakeRequest(mechanism="PLAIN"))
    return [again.error_code, authenticate(wire, b"x").error_code, ending(wire)]


CONVERSATIONS: dict[str, Callable[[Wire], Any]] = {
    "right": plain_as("alice", "alice-secret"),
    "wrong": plain_as("alice", "wrong"),
    "nobody": plain_as("nobody", "x"),
    "no password": plain_as("alice", ""),
    "no name": plain_as("", "x"),
    "another's name": token(b"bob\0alice\0alice-secret"),
    "own name twice": token(b"alice\0alice\0alice-secret"),
    "two tokens": token(b"alice\0alice-secret"),
    "five tokens": token(b"a\0b\0c\0d\0e"),
    "empty token": token(b""),
    "version 0": token(plain("alice", "alice-secret"), 0),
    "version 0, wrong": token(plain("alice", "wrong"), 0),
    "scram right": scram_as("sam", "sam-secret"),
    "scram wrong": scram_as("sam", "wrong"),
    "not enabled": lambda wire: [told(handshake(wire, "GSSAPI")), wire.is_closed_by_peer()],
    "greeted twice": greeted_twice,
    "strange greeting": strange_greeting,
    "bad software": bad_software,
    "bare": bare,
    "bare and wrong": bare_and_wrong,
    "metadata first": out_of_place(m.MetadataRequest(topics=[]), 12),
    "produce first": out_of_place(m.ProduceRequest(acks=1), 9),
    "authenticate first": out_of_place(m.SaslAuthenticateRequest(auth_bytes=b"x"), 2),
    "behind the handshake": behind_the_handshake,
    "logged in already": logged_in_already,
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_login_goes_the_same_way(pairs: list[Pair], name: str) -> None:
    seen = []
    for pair in pairs:
        with pair.wire() as wire:
            seen.append(CONVERSATIONS[name](wire))
    assert seen[0] == seen[1]


def test_a_renewal_goes_the_same_way(pairs: list[Pair]) -> None:
    """KIP-368: renewed, too soon, late, by another user, by another mechanism, not at all."""
    seen: list[list[Any]] = []
    for pair in pairs:
        found: list[Any] = []
        seen.append(found)
        with pair.wire(short=True) as wire:
            found.append(told(plain_login(wire)))
            found.append(told(plain_login(wire)))
            found.append(handshake(wire).error_code)
            time.sleep(SHORT_MS / 1000 + 0.1)
            found.append(told(plain_login(wire)))
            found.append(ending(wire))
        with pair.wire(short=True) as wire:
            plain_login(wire)
            found.append(told(plain_login(wire, "bob", "bob-secret")))
            found.append(wire.is_closed_by_peer())
        with pair.wire(short=True) as wire:
            plain_login(wire)
            found.append(told(handshake(wire, "SCRAM-SHA-256")))
            wire.send(m.SaslAuthenticateRequest(auth_bytes=b"n,,n=admin,r=abc"))
            found.append(wire.is_closed_by_peer())
        with pair.wire(short=True) as wire:
            plain_login(wire)
            time.sleep(SHORT_MS / 1000 + 0.1)
            found.append(ending(wire))
    assert seen[0] == seen[1]


def test_users_are_judged_the_same_way(pairs: list[Pair]) -> None:
    kind = m.AlterUserScramCredentialsRequest
    up, down = kind.ScramCredentialUpsertion, kind.ScramCredentialDeletion
    asked = [
        kind(upsertions=[up("a", 1, 4096, b"s", b"p"), up("a", 2, 16384, b"s", b"p")]),
        kind(upsertions=[up("a", 1, 4095, b"s", b"p"), up("b", 1, 16385, b"s", b"p"), up("", 1, 4096, b"s", b"p")]),
        kind(upsertions=[up("c", 0, 4096, b"s", b"p"), up("d", 3, 4096, b"s", b"p")]),
        kind(deletions=[down("a", 1), down("nobody", 1)], upsertions=[up("a", 1, 4096, b"s", b"p")]),
        kind(deletions=[down("a", 1), down("a", 2), down("b", 9)]),
    ]
    describe = m.DescribeUserScramCredentialsRequest
    names = [describe.UserName(name) for name in ("sam", "none", "twice", "twice")]
    seen = []
    for pair in pairs:
        with Wire(pair.node.bootstrap) as admin:
            found: list[Any] = [
                sorted((each.user, each.error_code, each.error_message) for each in admin.ask(request).results)
                for request in asked
            ]
            answer = admin.ask(describe(users=names))
            found.append(sorted((each.user, each.error_code, each.error_message) for each in answer.results))
            seen.append(found)
    assert seen[0] == seen[1]


def test_tokens_are_judged_the_same_way(pairs: list[Pair]) -> None:
    kind = m.CreateDelegationTokenRequest

    def create(wire: Wire, *renewers: str, **fields: Any) -> Any:
        request = kind(None, None, [kind.CreatableRenewers(*each.split(":")) for each in renewers], -1)
        for name, value in fields.items():
            setattr(request, name, value)
        return wire.ask(request)

    seen = []
    for pair in pairs:
        with Wire(pair.node.bootstrap) as nobody, pair.wire() as alice, pair.wire() as bob:
            plain_login(alice, "alice", "alice-secret")
            plain_login(bob, "bob", "bob-secret")
            made = create(alice, "User:bob")
            by_token = by_token_login(pair, made)
            found: list[Any] = [
                create(nobody).error_code,
                nobody.ask(m.DescribeDelegationTokenRequest(owners=None)).error_code,
                (made.error_code, made.principal_name, made.token_requester_principal_name, len(made.hmac)),
                (made.expiry_timestamp_ms - made.issue_timestamp_ms, made.max_timestamp_ms - made.issue_timestamp_ms),
                create(alice, "Group:x").error_code,
                create(alice, max_lifetime_ms=1000).error_code,
                bob.ask(m.RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=100_000)).error_code,
                bob.ask(m.RenewDelegationTokenRequest(hmac=b"?")).error_code,
                len(bob.ask(m.DescribeDelegationTokenRequest(owners=None)).tokens) > 0,
                len(bob.ask(m.DescribeDelegationTokenRequest(owners=[])).tokens),
                create(by_token).error_code,
                by_token.ask(m.DescribeDelegationTokenRequest(owners=None)).error_code,
                alice.ask(m.ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)).error_code,
            ]
            seen.append(found)
            by_token.__exit__(None, None, None)
    assert seen[0] == seen[1]


def by_token_login(pair: Pair, made: Any) -> Wire:
    """Kafka's broker hears of a token a moment after its controller has made it."""
    patience = Deadline("the token logs in")
    while True:
        wire = pair.wire()
        answer = scram_login(wire, made.token_id, b64encode(made.hmac).decode(), by_token=True)
        if not answer.error_code:
            return wire
        wire.__exit__(None, None, None)
        patience.check(answer)


@pytest.mark.matrix
def test_users_tokens_and_quotas_hold_on_the_directory_of_the_other(tmp_path: Path) -> None:
    theirs, ours = Pair(ApacheKafka(tmp_path / "kafka")), Pair(Ottla(tmp_path / "ottla"))
    tokens = {}
    for pair, name in ((theirs, "tina"), (ours, "otto")):
        with pair.node, Wire(pair.node.bootstrap) as admin, pair.wire() as alice:
            assert make_user(admin, name, "secret") == 0
            assert set_quota(admin, name) == 0
            plain_login(alice, "alice", "alice-secret")
            tokens[name] = alice.ask(m.CreateDelegationTokenRequest(None, None, [], -1))
            assert tokens[name].error_code == 0
    moved_out = Pair(ApacheKafka(tmp_path / "kafka2", ours.node.data))
    moved_in = Pair(Ottla(tmp_path / "ottla2", theirs.node.data))
    for pair, name in ((moved_in, "tina"), (moved_out, "otto")):
        with pair.node, pair.wire() as wire:
            assert scram_login(wire, name, "secret").error_code == 0
            by_token_login(pair, tokens[name]).__exit__(None, None, None)
            with Wire(pair.node.bootstrap) as admin:
                assert quotas_of(admin, name) == {"producer_byte_rate": 1024.0}


def test_dump_log_segments_reads_what_is_kept_of_users_acls_tokens_and_quotas(
    tmp_path: Path, java_tools: Tools
) -> None:
    acl = (2, "orders", 3, "User:otto", "*", 3, 3)
    pair = Pair(Ottla(tmp_path / "ottla", extra=AUTHORIZED))
    with pair.node, Wire(pair.node.bootstrap) as admin, pair.wire() as alice:
        for name in ("otto", "gone"):
            assert make_user(admin, name, "secret") == 0
        users = m.AlterUserScramCredentialsRequest
        assert admin.ask(users(deletions=[users.ScramCredentialDeletion("gone", 1)])).results[0].error_code == 0
        assert set_quota(admin, "otto") == 0
        plain_login(alice, "alice", "alice-secret")
        assert alice.ask(m.CreateDelegationTokenRequest(None, None, [], -1)).error_code == 0
        created = admin.ask(m.CreateAclsRequest([m.CreateAclsRequest.AclCreation(*acl)]))
        assert [each.error_code for each in created.results] == [0]
        wanted = m.DeleteAclsRequest.DeleteAclsFilter(*acl)
        assert admin.ask(m.DeleteAclsRequest([wanted])).filter_results[0].error_code == 0
    logs = sorted(pair.node.data.glob("__cluster_metadata-0/*.log"))
    dump = "org.apache.kafka.tools.DumpLogSegments"
    out = java_tools.must(dump, "--cluster-metadata-decoder", "--files", ",".join(map(str, logs)))
    for kind in SECURITY_RECORDS:
        assert f'"type":"{kind}"' in out, kind
    assert "Could not decode" not in out and "isvalid: false" not in out


def set_quota(admin: Wire, user: str) -> int:
    kind = m.AlterClientQuotasRequest
    entity = [kind.EntityData(entity_type="user", entity_name=user)]
    wanted = [kind.OpData(key="producer_byte_rate", value=1024.0, remove=False)]
    return int(admin.ask(kind(entries=[kind.EntryData(entity=entity, ops=wanted)]), 1).entries[0].error_code)


def quotas_of(admin: Wire, user: str) -> dict[str, float]:
    kind = m.DescribeClientQuotasRequest
    wanted = [kind.ComponentData(entity_type="user", match_type=0, match=user)]
    answer = admin.ask(kind(components=wanted, strict=True), 1)
    return {value.key: value.value for entry in answer.entries or () for value in entry.values}


@pytest.mark.matrix
def test_a_directory_that_kafka_formatted_with_users_has_them_at_the_first_start(tmp_path: Path) -> None:
    class WithUser(ApacheKafka):
        def format(self) -> None:
            import subprocess  # noqa: PLC0415

            from tests.support import jvm  # noqa: PLC0415

            words = ["kafka.tools.StorageTool", "format", "-t", "ottlaPeerClusterId0000", "-c", str(self.properties)]
            added = ["--add-scram", "SCRAM-SHA-256=[name=fay,password=secret,iterations=8192]"]
            subprocess.run(jvm.java(self._jars, *words, *added), check=True, capture_output=True)

    formatted = WithUser(tmp_path / "kafka")
    formatted.format()
    pair = Pair(Ottla(tmp_path / "ottla", formatted.data))
    with pair.node, pair.wire() as wire:
        assert scram_login(wire, "fay", "secret").error_code == 0
