"""The TLS of a node: made at the start, renewed while it runs, by the rules of KIP-226."""

import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from ottla.model.ids import Millis
from ottla.model.properties import Settings
from ottla.net.tls import Material, material
from ottla.node import tls as node_tls
from ottla.node.tls import NodeTls
from ottla.security.tls.settings import TlsRefused, TlsSettings
from tests.support.certificates import authority, authority_file, issued, stranger, written

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    def monotonic(self) -> Millis:
        return Millis(0)

    def wall(self) -> Millis:
        return Millis(int(NOW.timestamp()) * 1000)


def given(directory: Path, **more: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "listeners": "SSL://localhost:9092,CONTROLLER://localhost:9093",
        "inter.broker.listener.name": "SSL",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": str(directory / "node.pem"),
        "ssl.truststore.location": str(directory / "ca.pem"),
        **{name.replace("_", "."): text for name, text in more.items()},
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    authority_file(tmp_path)
    write(tmp_path, issued(**LONG))
    return tmp_path


LONG: dict[str, Any] = {"not_after": datetime(2040, 1, 1, tzinfo=UTC)}
_WRITTEN = [0]


def write(place: Path, leaf: trustme.LeafCert, name: str = "node") -> Path:
    """With a time of its own, whatever the file system's clock says."""
    path = written(place, leaf, name)
    _WRITTEN[0] += 1
    os.utime(path, (_WRITTEN[0], _WRITTEN[0]))
    return path


def made(place: Path, **more: str) -> NodeTls:
    return NodeTls(Settings.from_properties(given(place, **more)), Clock())


def contexts(tls: NodeTls) -> list[ssl.SSLContext]:
    server, way = tls.listener("SSL"), tls.way("SSL").tls
    assert server is not None and way is not None
    return [server.context, way.context]


def refused(run: Callable[[], object]) -> str:
    with pytest.raises(TlsRefused) as caught:
        run()
    return str(caught.value)


def test_a_file_that_was_written_anew_makes_new_contexts_on_both_sides(place: Path) -> None:
    tls = made(place)
    before = contexts(tls)
    tls.reconfigure(Settings.from_properties(given(place)))
    assert contexts(tls) == before
    write(place, issued(**LONG))
    tls.reconfigure(Settings.from_properties(given(place)))
    assert all(new is not old for new, old in zip(contexts(tls), before, strict=True))


def test_another_subject_keeps_the_old_certificate_and_is_told_once(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = made(place)
    before = contexts(tls)
    write(place, issued(common_name="other", **LONG))
    settings = Settings.from_properties(given(place))
    assert "ssl.allow.dn.changes=true would let it pass" in refused(lambda: tls.check(settings))
    tls.reconfigure(settings)
    tls.reconfigure(settings)
    assert contexts(tls) == before
    told = [record for record in caplog.records if "ssl.allow.dn.changes" in record.message]
    assert len(told) == 2  # one for each listener
    tls.reconfigure(Settings.from_properties(given(place, ssl_allow_dn_changes="true")))


def test_a_file_that_is_finished_while_it_is_read_is_taken_up_at_the_next_look(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = made(place)
    before = contexts(tls)
    settings = Settings.from_properties(given(place))
    (place / "node.pem").write_text("-----BEGIN half")
    os.utime(place / "node.pem", (5_000, 5_000))
    read = material

    def then_finished(asked: TlsSettings) -> Material:
        try:
            return read(asked)
        finally:
            write(place, issued(**LONG))
            monkeypatch.setattr(node_tls, "material", read)

    monkeypatch.setattr(node_tls, "material", then_finished)
    tls.reconfigure(settings)
    tls.reconfigure(settings)
    assert all(new is not old for new, old in zip(contexts(tls), before, strict=True))


def test_a_lost_name_and_a_strange_authority_are_refused(place: Path) -> None:
    tls = made(place)
    settings = Settings.from_properties(given(place))
    write(place, issued("127.0.0.1", **LONG))
    assert "lacks DNS:localhost" in refused(lambda: tls.check(settings))
    write(place, issued(ca=stranger(), **LONG))
    assert "the nodes of this cluster would not accept each other" in refused(lambda: tls.check(settings))
    (place / "node.pem").write_text("-----BEGIN nothing")
    assert "node.pem" in refused(lambda: tls.check(settings))


def test_old_and_new_have_to_accept_each_other(place: Path) -> None:
    """A new authority has to be trusted everywhere before the first node shows its certificate."""
    tls = made(place)
    (place / "ca.pem").write_bytes(stranger().cert_pem.bytes())
    os.utime(place / "ca.pem", (7, 7))
    write(place, issued(ca=stranger(), **LONG))
    settings = Settings.from_properties(given(place))
    assert "the nodes of this cluster would not accept each other" in refused(lambda: tls.check(settings))
    (place / "ca.pem").write_bytes(stranger().cert_pem.bytes() + authority().cert_pem.bytes())
    os.utime(place / "ca.pem", (8, 8))
    # The old node still trusts the old authority alone, so this takes two steps: first trust, then the certificate.
    assert "would not accept each other" in refused(lambda: tls.check(settings))
    write(place, issued(**LONG))
    tls.reconfigure(settings)
    write(place, issued(ca=stranger(), **LONG))
    tls.check(settings)


def test_a_dynamic_setting_of_a_listener_names_another_store(place: Path) -> None:
    tls = made(place)
    before = contexts(tls)
    other = write(place, issued(**LONG), "other")
    dynamic = {"listener.name.ssl.ssl.keystore.location": str(other)}
    settings = Settings.from_properties(given(place)).with_dynamic({}, dynamic)
    tls.check(settings)
    tls.reconfigure(settings)
    assert all(new is not old for new, old in zip(contexts(tls), before, strict=True))
    gone = Settings.from_properties(given(place)).with_dynamic(
        {}, {"listener.name.ssl.ssl.keystore.location": str(place / "gone.pem")}
    )
    assert "gone.pem: No such file" in refused(lambda: tls.check(gone))


def test_what_cannot_be_had_is_refused_at_the_start_with_listener_and_file(place: Path) -> None:
    (place / "node.pem").unlink()
    assert refused(lambda: made(place)) == (
        f"listener SSL: ssl.keystore.location: {place / 'node.pem'}: No such file or directory"
    )
    write(place, issued(ca=stranger(), **LONG))
    assert "Put the authority that signed the certificate into ssl.truststore" in refused(lambda: made(place))
    write(place, issued(**LONG))
    assert "RE2" in refused(lambda: made(place, ssl_principal_mapping_rules="RULE:(?=a)/x/"))


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (datetime(2030, 1, 5, tzinfo=UTC), "ends on 2030-01-05"),
        (datetime(2029, 12, 31, tzinfo=UTC), "ended on 2029-12-31: clients refuse it"),
        (datetime(2031, 1, 1, tzinfo=UTC), None),
    ],
)
def test_a_certificate_that_ends_soon_is_warned_of(
    place: Path, caplog: pytest.LogCaptureFixture, end: datetime, said: str | None
) -> None:
    write(place, issued(not_after=end))
    made(place)
    warned = [record.message for record in caplog.records if "the certificate in" in record.message]
    assert len(warned) == (0 if said is None else 2)
    assert all(said in each for each in warned if said)


def test_a_large_rsa_key_is_warned_of(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = authority().issue_cert("localhost", key_type=trustme.KeyType.RSA)
    monkeypatch.setattr("ottla.node.tls._SLOW_RSA_BITS", 2049)
    made(place, ssl_keystore_location=str(write(place, usual, "rsa")))
    assert not [record for record in caplog.records if "hold up everybody" in record.message]
    monkeypatch.setattr("ottla.node.tls._SLOW_RSA_BITS", 2048)
    made(place, ssl_keystore_location=str(place / "rsa.pem"))
    assert len([record for record in caplog.records if "its key is RSA 2048" in record.message]) == 2


def test_client_certificates_are_asked_for_as_the_settings_of_the_listener_say(place: Path) -> None:
    prefixed = given(place, ssl_client_auth="required") | {"listener.name.controller.ssl.client.auth": "none"}
    tls = NodeTls(Settings.from_properties(prefixed), Clock())
    modes = {name: found.context.verify_mode for name in ("SSL", "CONTROLLER") if (found := tls.listener(name))}
    assert modes == {"SSL": ssl.CERT_REQUIRED, "CONTROLLER": ssl.CERT_NONE}
