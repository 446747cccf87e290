"""Where a node listens, and what its machine is called."""

import socket

import pytest

from ottla.net import host_name
from ottla.net.host_name import NoHostName, canonical_host_name
from ottla.net.listening import listening_socket, plain_address
from tests.support.patience import PATIENCE_SECONDS

Answers = list[tuple[int, int, int, str, tuple[str, int]]]


def test_without_a_host_both_ipv6_and_ipv4_are_listened_on() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this system has no socket for IPv6 and IPv4")
    sock = listening_socket("", 0, 5)
    seen = []
    with sock:
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, sock.getsockname()[1]), timeout=PATIENCE_SECONDS):
                sock.setblocking(True)
                peer, address = sock.accept()
                peer.close()
                seen.append(plain_address(address[0]))
    assert seen == ["127.0.0.1", "::1"]


def test_an_ipv4_address_is_told_as_such_whatever_socket_it_came_over() -> None:
    assert plain_address("::ffff:192.0.2.7") == plain_address("192.0.2.7") == "192.0.2.7"
    assert plain_address("::ffff:c000:207") == "::ffff:c000:207"


class Machine:
    """Name servers that know what they are told."""

    def __init__(self, names: dict[str, str], reverse: dict[str, str]) -> None:
        self.names = names
        self.reverse = reverse

    AF_INET, SOCK_STREAM = socket.AF_INET, socket.SOCK_STREAM

    def gethostname(self) -> str:
        return "own"

    def getaddrinfo(self, name: str, port: None, family: int = 0, kind: int = 0) -> Answers:
        if name not in self.names:
            raise socket.gaierror(-2, "Name or service not known")
        return [(family, kind, 6, "", (self.names[name], 0))]

    def gethostbyaddr(self, address: str) -> tuple[str, list[str], list[str]]:
        if address not in self.reverse:
            raise socket.herror(1, "Unknown host")
        return self.reverse[address], [], [address]


@pytest.mark.parametrize(
    ("names", "reverse", "expected"),
    [
        ({"own": "192.0.2.1", "own.example": "192.0.2.1"}, {"192.0.2.1": "own.example"}, "own.example"),
        ({"own": "192.0.2.1"}, {}, "192.0.2.1"),
        ({"own": "192.0.2.1", "other": "192.0.2.9"}, {"192.0.2.1": "other"}, "192.0.2.1"),
        ({"own": "192.0.2.1"}, {"192.0.2.1": "forged"}, "192.0.2.1"),
    ],
    ids=["both ways", "no reverse", "leads elsewhere", "leads nowhere"],
)
def test_the_canonical_name_is_the_one_that_leads_back_to_the_address(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, str], reverse: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(host_name, "socket", Machine(names, reverse))
    assert canonical_host_name() == expected


def test_a_machine_whose_name_has_no_address_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_name, "socket", Machine({}, {}))
    with pytest.raises(NoHostName, match=r"own, has no address .* Say in advertised\.listeners"):
        canonical_host_name()
