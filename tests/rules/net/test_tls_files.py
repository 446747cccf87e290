"""Key and trust stores on the disk: what is there in place of a file must not hold up the node that looks."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ottla.net.tls import material, refuse_strangers
from ottla.security.tls.settings import PEM, Store, TlsRefused, TlsSettings
from tests.support.certificates import authority_file, issued, written


def refusal(key: Path) -> str:
    with pytest.raises(TlsRefused) as caught:
        material(TlsSettings(key=Store("ssl.keystore", PEM, str(key)), trust=None))
    return str(caught.value)


def test_a_pipe_or_a_directory_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        assert refusal(place) == f"ssl.keystore.location: {place}: it is no regular file"
    missing = tmp_path / "missing"
    assert refusal(missing) == f"ssl.keystore.location: {missing}: No such file or directory"


def test_a_certificate_that_has_ended_is_to_be_renewed_and_no_matter_of_trust(tmp_path: Path) -> None:
    ended = issued(not_before=datetime(2019, 1, 1, tzinfo=UTC), not_after=datetime(2020, 1, 1, tzinfo=UTC))
    settings = TlsSettings(
        key=Store("ssl.keystore", PEM, str(written(tmp_path, ended, "node"))),
        trust=Store("ssl.truststore", PEM, str(authority_file(tmp_path))),
    )
    with pytest.raises(TlsRefused, match=r"has expired .*Renew the certificate"):
        refuse_strangers(material(settings), material(settings))
