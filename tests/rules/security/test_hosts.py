"""ACLs hold addresses as Java writes them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.hosts import address_bytes, address_text, as_java


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::", "0:0:0:0:0:0:0:0"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("no address", "no address"),
        ("a:b", "a:b"),
        ("x::y", "x::y"),
    ],
)
def test_the_text_of_an_address_is_javas(address: str, text: str) -> None:
    assert as_java(address) == text


@given(st.ip_addresses())
def test_bytes_and_text_are_the_same_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert address_text(address.packed) == as_java(str(address)) or (address.version == 6 and "." in str(address))
    assert address_bytes(address_text(address.packed)) == address.packed


def test_other_lengths_are_no_address() -> None:
    with pytest.raises(ValueError, match="4 or 16 bytes, not 5"):
        address_text(bytes(5))
