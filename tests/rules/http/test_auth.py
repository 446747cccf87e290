"""How credentials travel."""

import base64

import pytest

from ottla.http.auth import Basic, Bearer, credentials
from ottla.http.problems import Problem


def header(value: str) -> dict[str, str]:
    return {"authorization": value}


def test_basic_and_bearer_are_read() -> None:
    secret = base64.b64encode(b"alice:pa:ss").decode()
    assert credentials(header(f"Basic {secret}")) == Basic("alice", "pa:ss")
    assert credentials(header("bearer abc.def")) == Bearer("abc.def")
    assert credentials({}) is None


@pytest.mark.parametrize("value", ["Basic ???", "Basic " + base64.b64encode(b"alice").decode(), "Digest x"])
def test_what_cannot_be_read_is_a_401_with_the_challenge(value: str) -> None:
    with pytest.raises(Problem) as raised:
        credentials(header(value))
    assert raised.value.status == 401
    assert raised.value.headers == {"www-authenticate": 'Basic realm="ottla"'}


def test_credentials_are_not_shown_when_printed() -> None:
    assert "secret" not in f"{Basic('alice', 'secret')!r} {Bearer('secret')}"
