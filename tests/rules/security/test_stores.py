"""Key and trust stores in three formats: what is read, and what is said of those that cannot be."""

import re
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.security.tls import jks, pem, stores
from ottla.security.tls.settings import JKS, PEM, PKCS12, Store, TlsRefused
from tests.support import jks as written_jks
from tests.support.certificates import authority, issued
from tests.support.examples import examples

PASSWORD = "changeit"


@cache
def leaf() -> tuple[str, str]:
    """Key and chain of one certificate, as PEM."""
    made = issued()
    key = load_pem_private_key(made.private_key_pem.bytes(), None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return text, "".join(each.bytes().decode() for each in made.cert_chain_pems)


@cache
def authority_pem() -> str:
    return authority().cert_pem.bytes().decode()


def der_of(text: str) -> bytes:
    return pem.blocks(text)[0].data


def encrypted(key: str, password: str) -> str:
    loaded = load_pem_private_key(key.encode(), None)
    kind = BestAvailableEncryption(password.encode())
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, kind).decode()


def pkcs12(password: str | None = PASSWORD, *, with_key: bool = True) -> bytes:
    key, chain = leaf()
    kind = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    return serialize_key_and_certificates(
        b"node",
        load_pem_private_key(key.encode(), None) if with_key else None,  # type: ignore[arg-type]
        x509.load_pem_x509_certificate(chain.encode()) if with_key else None,
        [x509.load_pem_x509_certificate(authority_pem().encode())],
        kind,
    )


def jks_with_key(password: str = PASSWORD, key_password: str | None = None) -> bytes:
    key, chain = leaf()
    entry = written_jks.key_entry("node", der_of(key), [der_of(chain)], key_password or password)
    return written_jks.store([written_jks.trusted_entry("ca", der_of(authority_pem())), entry], password)


def key_store(kind: str, **how: str) -> Store:
    return Store("ssl.keystore", kind, "node.store", **how)


def trust_store(kind: str, **how: str) -> Store:
    return Store("ssl.truststore", kind, "trust.store", **how)


def refusal(store: Store, data: bytes, *, trust: bool = False) -> str:
    with pytest.raises(TlsRefused) as caught:
        (stores.trusted if trust else stores.identity)(store, data)
    return str(caught.value)


# ---- what is read


@pytest.mark.parametrize("kind", ["PKCS#8", "the key last", "EC"])
def test_a_pem_file_holds_key_and_chain_in_any_order(kind: str) -> None:
    key, chain = leaf()
    if kind == "EC":
        loaded = load_pem_private_key(key.encode(), None)
        key = loaded.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
        assert "BEGIN EC PRIVATE KEY" in key
    text = chain + key if kind == "the key last" else key + chain
    found = stores.identity(key_store(PEM), text.encode())
    assert found.pem == key + chain
    assert found.certificate.subject.startswith("CN=node,")
    assert found.certificate.alternative_names == ("DNS:localhost", "IP:127.0.0.1")


def test_pem_text_in_a_setting_may_stand_in_one_line() -> None:
    key, chain = leaf()
    store = Store("ssl.keystore", PEM, key=key.replace("\n", " "), certificates=chain.replace("\n", " "))
    assert stores.identity(store).pem == key + chain


def test_an_encrypted_key_goes_to_openssl_as_it_is() -> None:
    key, chain = leaf()
    text = encrypted(key, "secret")
    found = stores.identity(key_store(PEM, key_password="secret"), (text + chain).encode())
    assert (found.key, found.password) == (text, "secret")
    assert "secret" not in repr(found)


@pytest.mark.parametrize("said", [JKS, PKCS12])
@pytest.mark.parametrize("really", [JKS, PKCS12])
def test_jks_and_pkcs12_are_taken_for_each_other_as_java_does(said: str, really: str) -> None:
    data = jks_with_key() if really == JKS else pkcs12()
    found = stores.identity(key_store(said, password=PASSWORD), data)
    key, chain = leaf()
    assert der_of(found.key) == der_of(key)
    assert found.certificate.der == der_of(chain)


def test_a_key_in_jks_may_have_a_password_of_its_own() -> None:
    store = key_store(JKS, password=PASSWORD, key_password="inner")
    assert der_of(stores.identity(store, jks_with_key(key_password="inner")).key) == der_of(leaf()[0])


@pytest.mark.parametrize("kind", [PEM, JKS, PKCS12])
def test_trusted_certificates_are_read(kind: str) -> None:
    trusted = {
        PEM: authority_pem().encode(),
        JKS: written_jks.store([written_jks.trusted_entry("ca", der_of(authority_pem()))], PASSWORD),
        PKCS12: pkcs12(with_key=False),
    }[kind]
    store = trust_store(kind) if kind == PEM else trust_store(kind, password=PASSWORD)
    assert [each.der for each in stores.trusted(store, trusted)] == [der_of(authority_pem())]


def test_a_jks_trust_store_without_a_password_is_read_unchecked() -> None:
    data = written_jks.store([written_jks.trusted_entry("ca", der_of(authority_pem()))], PASSWORD)
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    assert len(stores.trusted(trust_store(JKS), damaged)) == 1
    said = refusal(trust_store(JKS, password=PASSWORD), damaged, trust=True)
    assert said == "ssl.truststore.location: trust.store: its password is another one, or the file was damaged"


# ---- what is not


@pytest.mark.parametrize(
    ("store", "data", "said"),
    [
        (key_store(PEM), b"", "nothing in it begins with -----BEGIN: it is no PEM file"),
        (key_store(JKS, password="x"), b"", "it is neither JKS nor PKCS12 nor PEM: it is empty"),
        (key_store(JKS, password="x"), b"text", "it is neither JKS nor PKCS12 nor PEM"),
        (key_store(JKS, password="x"), b"\xce\xce\xce\xce....", "it is a JCEKS store, which is not read here; keytool "
         "-importkeystore -deststoretype PKCS12 makes a PKCS12 store of it"),
        (key_store(PEM), b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
         "what stands under -----BEGIN CERTIFICATE----- is no base64"),
        (key_store(PEM), b"-----BEGIN CERTIFICATE-----\n-----END PRIVATE KEY-----\n",
         "-----BEGIN CERTIFICATE----- is followed by -----END PRIVATE KEY-----"),
    ],
)  # fmt: skip
def test_what_a_file_is_instead_is_said(store: Store, data: bytes, said: str) -> None:
    assert refusal(store, data) == f"ssl.keystore.location: node.store: {said}"


def test_a_type_that_does_not_fit_the_file_is_said_with_the_one_that_does() -> None:
    key, chain = leaf()
    assert refusal(key_store(JKS, password="x"), (key + chain).encode()).endswith("say so with ssl.keystore.type=PEM")
    assert refusal(key_store(PEM), jks_with_key()).endswith("say so with ssl.keystore.type=JKS")
    assert refusal(key_store(PEM), pkcs12()).endswith("say so with ssl.keystore.type=PKCS12")


@pytest.mark.parametrize("data", [jks_with_key(), pkcs12()], ids=[JKS, PKCS12])
def test_a_wrong_password_is_said_and_never_shown(data: bytes) -> None:
    said = refusal(key_store(JKS, password="wr0ng"), data)
    assert "its password is another one, or the file was damaged" in said
    assert "wr0ng" not in said


def test_a_wrong_password_of_the_key_is_told_from_that_of_the_store() -> None:
    store = key_store(JKS, password=PASSWORD, key_password="wr0ng")
    assert "the password of its private key is another one (ssl.key.password)" in refusal(store, jks_with_key())
    assert "one password" in refusal(store, pkcs12())


def test_a_key_and_its_password_have_to_fit() -> None:
    key, chain = leaf()
    plain, sealed = (key + chain).encode(), (encrypted(key, "secret") + chain).encode()
    assert "its private key is encrypted: ssl.key.password is needed" in refusal(key_store(PEM), sealed)
    assert "its private key is not encrypted" in refusal(key_store(PEM, key_password="x"), plain)


def test_a_store_without_what_it_is_for_says_so() -> None:
    key, chain = leaf()
    assert "no private key is in it" in refusal(key_store(PEM), chain.encode())
    assert "no certificate for its key is in it" in refusal(key_store(PEM), key.encode())
    assert "is it a trust store?" in refusal(key_store(PKCS12, password=PASSWORD), pkcs12(with_key=False))
    assert "no certificate is in it" in refusal(trust_store(PEM), key.encode(), trust=True)
    only_a_key = written_jks.store([], PASSWORD)
    assert "no certificate is in it" in refusal(trust_store(JKS, password=PASSWORD), only_a_key, trust=True)


@settings(max_examples=examples(300), deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), data=st.sampled_from((JKS, PKCS12, PEM)))
def test_a_store_that_was_cut_off_is_refused(at: float, data: str) -> None:
    key, chain = leaf()
    whole = {JKS: jks_with_key(), PKCS12: _PKCS12, PEM: (chain + key).encode().rstrip()}[data]
    cut = whole[: int(len(whole) * at)]
    store = key_store(PEM) if data == PEM else key_store(data, password=PASSWORD)
    assert refusal(store, cut).startswith("ssl.keystore.location: node.store: ")


@settings(max_examples=examples(300), deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), to=st.integers(1, 255), kind=st.sampled_from((JKS, PKCS12)))
def test_a_store_with_a_damaged_byte_is_refused_or_read_right(where: float, to: int, kind: str) -> None:
    whole = bytearray(jks_with_key() if kind == JKS else _PKCS12)
    whole[int(len(whole) * where)] ^= to
    try:
        found = stores.identity(key_store(kind, password=PASSWORD), bytes(whole))
    except TlsRefused:
        return
    assert der_of(found.key) == der_of(leaf()[0])


@settings(max_examples=examples(200), deadline=None)
@given(data=st.binary(max_size=200), start=st.sampled_from((b"", jks.MAGIC + b"\0\0\0\2", b"\x30\x82")))
def test_any_bytes_are_refused_in_words(data: bytes, start: bytes) -> None:
    for kind in (JKS, PEM):
        store = key_store(PEM) if kind == PEM else key_store(kind, password=PASSWORD)
        assert re.match(r"ssl\.keystore\.location: node\.store: \S", refusal(store, start + data))


_PKCS12 = pkcs12()
