"""Where a client begins."""

import pytest

from ottla.client.addresses import Address, parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("127.0.0.1:9092", [Address("127.0.0.1", 9092)]),
        ("kafka", [Address("kafka", 9092)]),
        ("a:1, b:2,", [Address("a", 1), Address("b", 2)]),
        ("PLAINTEXT://a:1", [Address("a", 1)]),
        ("[::1]:9192", [Address("::1", 9192)]),
        ("[::1]", [Address("::1", 9092)]),
        ("::1", [Address("::1", 9092)]),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, addresses: list[Address]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize("text", ["", " , ", ":9092", "a:b", "a:0", "a:65536", "a:-1"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT is expected"):
        parse_bootstrap(text)


def test_an_ipv6_address_prints_as_it_is_written() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
