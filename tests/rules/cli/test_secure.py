"""What `ottla start --secure` keeps beside the data, from start to start."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ottla.cli.app import run
from ottla.cli.secure import directory_of, prepared
from ottla.security.tls.certificate import Certificate, certificate
from ottla.security.tls.development import Authority
from ottla.security.tls.pem import blocks


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = str(tmp_path / "data")
    prepared(path, [])
    return path


def shown(data: str) -> Certificate:
    text = (directory_of(data) / "node.pem").read_text()
    return certificate(next(block.data for block in blocks(text) if block.label == "CERTIFICATE"))


def put(data: str, authority: Authority, *, days_left: float) -> Certificate:
    """A certificate for localhost and shop, as if somebody had made it a while ago."""
    now = datetime.now(UTC) - timedelta(days=365 - days_left)
    (directory_of(data) / "node.pem").write_bytes(authority.issued("node", ["localhost", "shop"], now, 365).pem)
    return shown(data)


def own_authority(data: str) -> Authority:
    directory = directory_of(data)
    return Authority.read((directory / "ca-key.pem").read_bytes(), (directory / "ca.pem").read_bytes())


@pytest.mark.parametrize("days_left", [-10, 0, 29])
def test_a_certificate_that_ends_is_made_anew_for_the_same_names_by_the_same_authority(
    data: str, days_left: float
) -> None:
    before = put(data, own_authority(data), days_left=days_left)
    settings = prepared(data, []).settings
    after = shown(data)
    assert (after.issuer, after.subject, after.alternative_names) == (
        before.issuer,
        before.subject,
        before.alternative_names,
    )
    assert after.not_after_s > (datetime.now(UTC) + timedelta(days=360)).timestamp()
    assert prepared(data, []).settings == settings
    assert shown(data) == after


def test_one_that_is_good_for_long_stays(data: str) -> None:
    before = put(data, own_authority(data), days_left=40)
    prepared(data, [])
    assert shown(data) == before


def test_a_name_that_is_asked_for_later_comes_into_it(data: str) -> None:
    put(data, own_authority(data), days_left=100)
    prepared(data, ["kafka1"])
    assert shown(data).alternative_names == ("DNS:localhost", "DNS:shop", "DNS:kafka1")


def test_what_another_authority_has_signed_is_not_touched(data: str) -> None:
    before = put(data, Authority.made(datetime.now(UTC), 1000), days_left=-1)
    prepared(data, [])
    assert shown(data) == before


def test_without_the_key_of_its_authority_it_stays_as_it_is(data: str) -> None:
    before = put(data, own_authority(data), days_left=-1)
    (directory_of(data) / "ca-key.pem").unlink()
    prepared(data, [])
    assert shown(data) == before


def test_certificates_for_development_do_not_go_where_a_clusters_passwords_lie(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    secured = prepared(data, [])
    secured.admin_made("localhost:9092")
    before = {path.name: path.read_bytes() for path in secured.directory.iterdir()}
    assert run(["certs", "dev", str(secured.directory)]) == 1
    assert "whose certificate `ottla start --secure` makes anew" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in secured.directory.iterdir()} == before


def test_the_next_steps_name_the_cluster_wherever_it_listens(data: str) -> None:
    assert "OTTLA_BOOTSTRAP=localhost:19092" in prepared(data, []).admin_made("localhost:19092")
