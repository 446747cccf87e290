"""Where a client begins."""

import asyncio

import pytest

from ottla.client.addresses import Address, parse_bootstrap
from ottla.client.aio.cluster import Cluster as Asynchronous
from ottla.client.blocking.cluster import Cluster as Blocking
from ottla.client.errors import Unreachable
from ottla.http.asking import NoAnswer, ask
from ottla.net.peer import Address as Node
from ottla.net.peer import SocketPeers
from ottla.net.peer import Unreachable as NodeUnreachable
from ottla.protocol.messages import MetadataRequest
from tests.support.patience import PATIENCE_MS


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


def test_a_name_that_no_host_can_have_is_nowhere_and_no_defect() -> None:
    """Where others raise OSError, Python raises UnicodeError for it."""
    with pytest.raises(Unreachable, match="the host name is not known"):
        Blocking(parse_bootstrap("a..b:9092")).metadata()

    async def scenario() -> None:
        async with Asynchronous(parse_bootstrap("a..b:9092")) as cluster:
            with pytest.raises(Unreachable, match="the host name is not known"):
                await cluster.metadata()
        peers = SocketPeers(asyncio.get_running_loop(), "test")
        with pytest.raises(NodeUnreachable, match="cannot connect"):
            await peers.ask(Node("a..b", 9092), MetadataRequest(), timeout_ms=PATIENCE_MS)
        peers.close()
        with pytest.raises(NoAnswer, match="cannot be reached"):
            await ask("http://a..b:8083", "GET", "/", {}, connect_s=30, answer_s=30)

    asyncio.run(scenario())
