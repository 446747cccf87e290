"""Delegation tokens over the wire: made by who is logged in, used by whom he trusts, gone when they end."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages as m
from ottla.testing import Cluster
from tests.support.sasl import plain_login, sasl_cluster, scram_login
from tests.support.wire import Wire


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    """Two nodes, so that one of them has to pass every request on."""
    with sasl_cluster(2, delegation_token_secret_key="shared-by-all-nodes") as kafka:
        yield kafka


@pytest.fixture
def alice(kafka: Cluster) -> Iterator[Wire]:
    with logged_in(kafka, "alice") as wire:
        yield wire


def logged_in(kafka: Cluster, name: str, node: int = 1) -> Wire:
    wire = Wire(kafka.bootstrap_server(node))
    assert plain_login(wire, name, f"{name}-secret").error_code == 0
    return wire


def create(wire: Wire, *renewers: str, **fields: Any) -> Any:
    kind = m.CreateDelegationTokenRequest
    request = kind(None, None, [kind.CreatableRenewers("User", name) for name in renewers], -1)
    for name, value in fields.items():
        setattr(request, name, value)
    return wire.ask(request)


def described(wire: Wire) -> list[str]:
    return [token.token_id for token in wire.ask(m.DescribeDelegationTokenRequest(owners=None)).tokens]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("node", [1, 2])
def test_who_has_a_token_acts_as_its_owner_on_every_node(
    kafka: Cluster, alice: Wire, node: int, mechanism: str
) -> None:
    made = create(alice)
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "alice", "alice")
    with Wire(kafka.bootstrap_server(node)) as wire:
        # The one that was asked knows it already; the other a moment later, as in Kafka.
        answer = scram_login(wire, made.token_id, b64encode(made.hmac).decode(), mechanism, by_token=True)
        if answer.error_code == 0:
            assert 0 < answer.session_lifetime_ms <= 86_400_000
            assert wire.ask(m.MetadataRequest(topics=[])).brokers
            refused = [
                create(wire).error_code,
                wire.ask(m.RenewDelegationTokenRequest(hmac=made.hmac)).error_code,
                wire.ask(m.ExpireDelegationTokenRequest(hmac=made.hmac)).error_code,
                wire.ask(m.DescribeDelegationTokenRequest(owners=None)).error_code,
            ]
            assert refused == [Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED] * 4
        else:
            assert node == 2


def test_a_token_and_a_password_are_not_the_same_thing(kafka: Cluster, alice: Wire) -> None:
    made = create(alice)
    for name, password, by_token in (
        (made.token_id, b64encode(made.hmac).decode(), False),
        (made.token_id, "guessed", True),
        ("alice", "alice-secret", True),
    ):
        with Wire(kafka.bootstrap_server(1)) as wire:
            assert scram_login(wire, name, password, by_token=by_token).error_code == 58


def test_owner_and_renewers_renew_and_expire_and_see_it(kafka: Cluster, alice: Wire) -> None:
    made = create(alice, "bob")
    with logged_in(kafka, "bob", 2) as bob, logged_in(kafka, "admin", 1) as admin:
        assert bob.ask(m.RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=5_000)).error_code == 0
        mismatch = Errors.DELEGATION_TOKEN_OWNER_MISMATCH
        assert admin.ask(m.RenewDelegationTokenRequest(hmac=made.hmac)).error_code == mismatch
        unknown = m.ExpireDelegationTokenRequest(hmac=b"?", expiry_time_period_ms=-1)
        assert bob.ask(unknown).error_code == Errors.DELEGATION_TOKEN_NOT_FOUND
        assert made.token_id in described(alice)
        expired = alice.ask(m.ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1))
        assert expired.error_code == 0
    with Wire(kafka.bootstrap_server(1)) as wire:
        answer = scram_login(wire, made.token_id, b64encode(made.hmac).decode(), by_token=True)
        assert answer.error_code in (0, 58)  # at once where it was decided, elsewhere a moment later


def test_where_nobody_logs_in_nobody_has_tokens() -> None:
    with Cluster(delegation_token_secret_key="x") as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert create(wire).error_code == Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert wire.ask(m.DescribeDelegationTokenRequest(owners=None)).error_code == 64


def test_without_a_secret_tokens_are_off() -> None:
    with sasl_cluster() as kafka, logged_in(kafka, "alice") as alice:
        assert create(alice).error_code == Errors.DELEGATION_TOKEN_AUTH_DISABLED
        assert alice.ask(m.DescribeDelegationTokenRequest(owners=None)).error_code == 61
