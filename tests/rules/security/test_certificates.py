"""What is read of certificates, which may follow which, and whom they name."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest
import trustme
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.security.tls import der, pem
from ottla.security.tls.certificate import Certificate, certificate
from ottla.security.tls.distinguished_name import java_name
from ottla.security.tls.principal_mapping import NoRuleApplies, PrincipalMapping
from ottla.security.tls.renewal import DAY_S, days_left, refuse_other_names, refuse_other_stores
from ottla.security.tls.settings import Store, TlsRefused, TlsSettings
from tests.support.certificates import authority, issued
from tests.support.examples import examples
from tests.support.names import Attribute, name_der

END = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


@cache
def node() -> Certificate:
    made = issued(
        "localhost", "127.0.0.1", "::1", "node@example.org", not_after=datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    )
    return certificate(pem.blocks(made.cert_chain_pems[0].bytes().decode())[0].data)


def test_a_certificate_tells_names_dates_and_key() -> None:
    found = node()
    twin = x509.load_der_x509_certificate(found.der)
    assert found.subject.startswith("CN=node,")
    assert found.alternative_names == ("DNS:localhost", "IP:127.0.0.1", "IP:::1", "email:node@example.org")
    assert (found.not_before_s, found.not_after_s) == (
        int(twin.not_valid_before_utc.timestamp()),
        int(END.timestamp()),
    )
    assert (found.key, found.rsa_bits, found.is_authority) == ("EC", 0, False)
    assert {"client", "server"} <= set(found.uses)


def test_an_authority_and_an_rsa_key_are_told() -> None:
    ca = certificate(pem.blocks(authority().cert_pem.bytes().decode())[0].data)
    assert (ca.is_authority, ca.is_self_signed, ca.uses) == (True, True, ())
    rsa = authority().issue_cert("localhost", key_type=trustme.KeyType.RSA)
    found = certificate(pem.blocks(rsa.cert_chain_pems[0].bytes().decode())[0].data)
    assert (found.key, found.rsa_bits) == ("RSA 2048", 2048)


def test_a_date_beyond_2049_is_read() -> None:
    made = issued("localhost", not_after=datetime(2051, 1, 1, tzinfo=UTC))
    found = certificate(pem.blocks(made.cert_chain_pems[0].bytes().decode())[0].data)
    assert found.not_after_s == int(datetime(2051, 1, 1, tzinfo=UTC).timestamp())


@settings(max_examples=examples(300), deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), to=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_certificate_is_read_or_refused(at: float, to: int, cut: bool) -> None:
    data = bytearray(node().der)
    spot = int(len(data) * at)
    data = data[:spot] if cut else data[:spot] + bytes([to]) + data[spot + 1 :]
    with suppress(der.Malformed):
        assert certificate(bytes(data)).der == bytes(data)


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_name_or_malformed(data: bytes) -> None:
    for tried in (data, name_der([Attribute("2.5.4.3", 0x0C, data)])):
        try:
            java_name(tried)
        except der.Malformed:
            assert tried is data


def test_names_are_spelt_as_java_does() -> None:
    """`tests/peer` compares with Java itself."""
    name = name_der(
        [Attribute("2.5.4.6", 0x13, b"DE")],
        [Attribute("2.5.4.10", 0x0C, b'Acme, "Inc" #1')],
        [Attribute("1.2.840.113549.1.9.1", 0x16, b"a@b.c"), Attribute("2.5.4.3", 0x0C, " Jürgen ".encode())],
    )
    assert java_name(name) == ('1.2.840.113549.1.9.1=#16056140622e63+CN=\\ Jürgen\\ ,O=Acme\\, \\"Inc\\" \\#1,C=DE')


# ---- users


def test_the_first_rule_that_matches_the_whole_name_wins() -> None:
    mapping = PrincipalMapping("RULE:^CN=([^,]+),OU=Ops,.*$/$1/L,RULE:CN=([^,]+)/$1/U")
    assert mapping.user("CN=Alice,OU=Ops,C=DE") == "alice"
    assert mapping.user("CN=Bob") == "BOB"
    with pytest.raises(NoRuleApplies, match="applies to CN=Carol,O=x"):
        mapping.user("CN=Carol,O=x")


@pytest.mark.parametrize(
    "rules", ["RULE:(?=a)b/x/", "RULE:(a/x/", "RULE:a/$1/", "RULE:(a)/$x/", "RULE:(a)/x\\", "wrong"]
)
def test_rules_that_cannot_be_used_are_refused_when_they_are_read(rules: str) -> None:
    with pytest.raises(ValueError, match=r"RULE|rule|replacement"):
        PrincipalMapping(rules)


@settings(max_examples=examples(200), deadline=None)
@given(rules=st.text("RULE:DFAT,/$0129()^*.[]\\CN=x LU", max_size=25), name=st.text("CN=x,1\\", max_size=10))
def test_any_rules_make_a_user_or_are_refused(rules: str, name: str) -> None:
    with suppress(ValueError):
        assert isinstance(PrincipalMapping(rules).user(name), str)


# ---- renewal (KIP-226)


def test_another_subject_is_refused_unless_it_is_allowed() -> None:
    other = replace(node(), subject="CN=other")
    with pytest.raises(TlsRefused, match=r"is for CN=other and the old one for CN=node.*ssl\.allow\.dn\.changes=true"):
        refuse_other_names(node(), other, other_subject=False, fewer_names=True)
    refuse_other_names(node(), other, other_subject=True, fewer_names=False)


def test_a_lost_alternative_name_is_refused_unless_it_is_allowed() -> None:
    fewer = replace(node(), alternative_names=("DNS:localhost", "DNS:new"))
    with pytest.raises(TlsRefused, match=r"lacks IP:127\.0\.0\.1, IP:::1.*ssl\.allow\.san\.changes=true"):
        refuse_other_names(node(), fewer, other_subject=True, fewer_names=False)
    refuse_other_names(node(), fewer, other_subject=False, fewer_names=True)
    refuse_other_names(fewer, replace(fewer, alternative_names=(*fewer.alternative_names, "DNS:more")),
                       other_subject=False, fewer_names=False)  # fmt: skip


def test_a_store_is_neither_added_nor_taken_away() -> None:
    nothing, key = TlsSettings(None, None), TlsSettings(Store("ssl.keystore", "PEM", "k"), None)
    trusting = TlsSettings(None, Store("ssl.truststore", "PEM", "t"))
    for old, new in ((nothing, key), (key, nothing), (nothing, trusting)):
        with pytest.raises(TlsRefused):
            refuse_other_stores(old, new)
    refuse_other_stores(trusting, nothing)
    refuse_other_stores(key, TlsSettings(Store("ssl.keystore", "JKS", "other", "p"), None))


@pytest.mark.parametrize(
    ("days", "told"), [(31, None), (30, 30), (8, 30), (7, 7), (2, 7), (1, 1), (0.5, 1), (0, 0), (-3, 0)]
)
def test_an_end_is_told_of_30_7_and_1_day_before(days: float, told: int | None) -> None:
    assert days_left(node(), node().not_after_s - days * DAY_S) == told
