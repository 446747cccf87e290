"""Kafka's ssl.* settings, held against each other: contradictions are refused by name."""

import ssl

import pytest

from ottla.security.tls import ciphers
from ottla.security.tls.settings import DEFAULTS, Store, TlsRefused, TlsSettings, tls_settings


def read(given: dict[str, object]) -> TlsSettings:
    return tls_settings(lambda name: given.get(name, DEFAULTS.get(name)))


def refused(**given: object) -> str:
    with pytest.raises(TlsRefused) as caught:
        read({f"ssl.{name.replace('_', '.')}": value for name, value in given.items()})
    return str(caught.value)


def test_nothing_set_means_kafkas_defaults() -> None:
    assert read({}) == TlsSettings(None, None, ("TLSv1.2", "TLSv1.3"), "", "none", checks_host_names=True)


def test_stores_are_read_with_their_passwords_and_show_none() -> None:
    found = read(
        {
            "ssl.keystore.type": "pkcs12",
            "ssl.keystore.location": "a.p12",
            "ssl.keystore.password": "s3cret",
            "ssl.key.password": "s3cret",
            "ssl.truststore.location": "b.jks",
        }
    )
    assert found.key == Store("ssl.keystore", "PKCS12", "a.p12", "s3cret", key_password="s3cret")
    assert found.trust == Store("ssl.truststore", "JKS", "b.jks")
    assert found.files == ("a.p12", "b.jks")
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keystore_key": "k"}, "ssl.keystore.key: a key as text needs ssl.keystore.type=PEM; it is JKS"),
        ({"keystore_type": "PEM", "keystore_key": "k"}, "ssl.keystore.certificate.chain: the key in ssl.keystore.key"),
        ({"keystore_type": "PEM", "keystore_certificate_chain": "c"}, "ssl.keystore.key: the certificates in"),
        (
            {"keystore_type": "PEM", "keystore_certificate_chain": "c", "keystore_key": "k", "keystore_location": "f"},
            "ssl.keystore.location: give a file or ssl.keystore.key, not both",
        ),
        (
            {"keystore_type": "PEM", "keystore_location": "f", "keystore_password": "p"},
            "ssl.keystore.password: PEM has",
        ),
        ({"keystore_location": "f"}, "ssl.keystore.password: a JKS key store needs its password; f has none here"),
        ({"keystore_password": "p"}, "ssl.keystore.password: there is no ssl.keystore.location that it could be for"),
        ({"truststore_password": "p"}, "ssl.truststore.password: there is no ssl.truststore.location"),
        ({"truststore_certificates": "c"}, "ssl.truststore.certificates: certificates as text need"),
        (
            {"truststore_type": "PEM", "truststore_certificates": "c", "truststore_location": "f"},
            "ssl.truststore.location: give a file or ssl.truststore.certificates, not both",
        ),
        (
            {"truststore_type": "PEM", "truststore_location": "f", "truststore_password": "p"},
            "ssl.truststore.password: a PEM trust store has no password; leave it out",
        ),
        ({"keystore_type": "BCFKS"}, "ssl.keystore.type: BCFKS is not known; PEM, JKS, PKCS12 are."),
        ({"enabled_protocols": ("TLSv1.1", "TLSv1.2")}, "ssl.enabled.protocols: TLSv1.1 is not spoken here"),
        ({"endpoint_identification_algorithm": "LDAPS"}, "ssl.endpoint.identification.algorithm: 'ldaps' is not known"),
        ({"cipher_suites": ("RC4",)}, "ssl.cipher.suites: RC4 is no cipher suite that is known here"),
    ],
)
def test_what_contradicts_itself_is_refused_as_by_kafka(given: dict[str, object], said: str) -> None:
    assert refused(**given).startswith(said)


def test_an_empty_algorithm_switches_the_check_of_host_names_off() -> None:
    assert not read({"ssl.endpoint.identification.algorithm": ""}).checks_host_names
    assert read({"ssl.endpoint.identification.algorithm": "HTTPS"}).checks_host_names


# ---- cipher suites

BOTH = ("TLSv1.2", "TLSv1.3")


def test_every_suite_of_the_table_is_known_to_openssl() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    known = {each["name"] for each in context.get_ciphers()}
    assert sorted(set(ciphers.OPENSSL_NAMES.values()) - known) == []


def test_suites_of_java_are_translated() -> None:
    suites = ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA")
    assert ciphers.chosen(suites, ("TLSv1.2",)) == ciphers.Chosen(
        "ECDHE-RSA-AES256-GCM-SHA384:AES128-SHA", ("TLSv1.2",)
    )


def test_versions_without_a_suite_are_left_out() -> None:
    assert ciphers.chosen(("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",), BOTH).versions == ("TLSv1.2",)
    assert ciphers.chosen(ciphers.TLS_1_3, BOTH) == ciphers.Chosen("", ("TLSv1.3",))
    assert ciphers.chosen((), BOTH) == ciphers.Chosen("", BOTH)


def test_some_suites_of_tls_1_3_without_the_others_cannot_be_honoured() -> None:
    with pytest.raises(ValueError, match=r"add TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256, or leave TLSv1.3"):
        ciphers.chosen(("TLS_AES_256_GCM_SHA384",), BOTH)
    with pytest.raises(ValueError, match="no suite of the list belongs to a version"):
        ciphers.chosen(("TLS_AES_256_GCM_SHA384",), ("TLSv1.2",))
