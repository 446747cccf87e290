"""Where services listen, and which names they answer to."""

import pytest

from ottla.http.addresses import Address, may_be_called, parse


def test_listeners_are_written_as_urls() -> None:
    assert parse("http://127.0.0.1:8081") == Address("http", "127.0.0.1", 8081)
    assert parse(" https://[::1]:8443/") == Address("https", "::1", 8443)
    assert parse("http://:80") == Address("http", "", 80)
    assert str(Address("https", "::1", 8443)) == "https://[::1]:8443"


@pytest.mark.parametrize(
    "text", ["127.0.0.1:8081", "ftp://x:1", "http://x", "http://x:99999", "http://x:1/path", "http://[:1"]
)
def test_anything_else_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="http://host:port"):
        parse(text)


@pytest.mark.parametrize(
    ("listening", "host", "expected"),
    [
        ("http://127.0.0.1:1", "127.0.0.1:1", True),
        ("http://127.0.0.1:1", "localhost:1", True),
        ("http://127.0.0.1:1", "", True),
        ("http://127.0.0.1:1", "[::1]:1", True),
        ("http://127.0.0.1:1", "evil.example:1", False),
        ("http://127.0.0.1:1", "[", False),
        ("http://localhost:1", "evil.example", False),
        ("http://0.0.0.0:1", "registry.example", True),
        ("http://:1", "registry.example", True),
    ],
)
def test_who_listens_on_loopback_does_not_answer_to_names_that_a_page_made_up(
    listening: str, host: str, expected: bool
) -> None:
    assert may_be_called(parse(listening), host) is expected
