"""Requests to other nodes: answers in order, and every end of a connection is told to everyone who waits."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from ottla.net.peer import Address, Outcome, Refused, SocketPeers, Then, Unreachable, Way
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.protocol.frames import decode_request_header, encode_response

SERVED = {18: (0, 4), 3: (0, 12), 10: (0, 4)}
Answer = Callable[[int, int, int, asyncio.StreamWriter], Awaitable[None]]


async def _nothing(key: int, version: int, correlation: int, writer: asyncio.StreamWriter) -> None:
    """A peer that greets and then says no more."""


async def _metadata(key: int, version: int, correlation: int, writer: asyncio.StreamWriter) -> None:
    response = messages.MetadataResponse(cluster_id=f"v{version}-{correlation}")
    writer.write(encode_response(key, version, correlation, response))


async def _hang_up(key: int, version: int, correlation: int, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _nonsense(key: int, version: int, correlation: int, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\0\0\0\x06" + correlation.to_bytes(4, "big") + b"\0\xff")


async def served(answer: Answer, test: Callable[[SocketPeers, Address], Awaitable[None]]) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header, _ = decode_request_header(await reader.readexactly(size))
                if header.api_key == 18:
                    kind = messages.ApiVersionsResponse
                    hello = kind(
                        api_keys=[
                            kind.ApiVersion(api_key=key, min_version=low, max_version=high)
                            for key, (low, high) in SERVED.items()
                        ]
                    )
                    writer.write(encode_response(18, header.api_version, header.correlation_id, hello))
                else:
                    await answer(header.api_key, header.api_version, header.correlation_id, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    peers = SocketPeers(asyncio.get_running_loop(), "test")
    try:
        await test(peers, Address("127.0.0.1", server.sockets[0].getsockname()[1]))
    finally:
        peers.close()
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        server.close()


def run(answer: Answer, test: Callable[[SocketPeers, Address], Awaitable[None]]) -> None:
    asyncio.run(served(answer, test))


def test_a_request_goes_out_at_the_highest_version_both_know_and_answers_come_in_order() -> None:
    async def test(peers: SocketPeers, to: Address) -> None:
        asked = [peers.ask(to, messages.MetadataRequest(), timeout_ms=5_000) for _ in range(3)]
        answers = await asyncio.gather(*asked)
        assert [getattr(a, "cluster_id", None) for a in answers] == ["v12-1", "v12-2", "v12-3"]

    run(_metadata, test)


def test_a_request_the_other_side_does_not_serve_fails_and_the_connection_stays() -> None:
    async def test(peers: SocketPeers, to: Address) -> None:
        with pytest.raises(Unreachable, match="does not serve VoteRequest"):
            await peers.ask(to, messages.VoteRequest(), timeout_ms=5_000)
        answer = await peers.ask(to, messages.MetadataRequest(), timeout_ms=5_000)
        assert isinstance(answer, messages.MetadataResponse)

    run(_metadata, test)


@pytest.mark.parametrize(
    ("answer", "why", "timeout_ms"),
    [
        (_hang_up, "closed by the other side", 60_000),
        (_nonsense, "cannot be read", 60_000),
        (_nothing, "no answer", 50),
    ],
)
def test_the_end_of_a_connection_is_told_to_all_who_wait_on_it(answer: Answer, why: str, timeout_ms: int) -> None:
    async def test(peers: SocketPeers, to: Address) -> None:
        asked = [peers.ask(to, messages.MetadataRequest(), timeout_ms=t) for t in (timeout_ms, 60_000, 60_000)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Unreachable] * 3
        assert why in str(outcomes[0])

    run(answer, test)


def test_nothing_is_asked_under_a_login_that_is_due_for_renewal_however_late_its_timer() -> None:
    """A busy node's would be: it would be cut off by every other one, and taken for dead."""
    asked: list[int] = []
    lifetimes = [50, 0]

    async def answer(key: int, version: int, correlation: int, writer: asyncio.StreamWriter) -> None:
        asked.append(key)
        kind = messages.response_class(key)
        writer.write(encode_response(key, version, correlation, kind()))

    def log_in(
        say: Callable[[Message, Then], None], told: Callable[[int], None], refused: Callable[[str], None]
    ) -> None:
        say(messages.FindCoordinatorRequest(), lambda _: told(lifetimes.pop(0)))

    async def test(_: SocketPeers, to: Address) -> None:
        loop = asyncio.get_running_loop()
        peers = SocketPeers(loop, "test", lambda lane: Way(log_in=log_in))
        try:
            await peers.ask(to, messages.MetadataRequest(), timeout_ms=60_000)
            late = loop.time() + 0.05
            while loop.time() < late:
                """The loop has no turn meanwhile."""
            await peers.ask(to, messages.MetadataRequest(), timeout_ms=60_000)
        finally:
            peers.close()
        login, request = messages.FindCoordinatorRequest.API_KEY, messages.MetadataRequest.API_KEY
        assert asked == [login, request, login, request]

    run(answer, test)


def test_a_request_whose_connection_ends_as_its_login_is_renewed_is_told_so() -> None:
    """A node that was stopped for a while has renewals that are due, on connections that the others have given up."""
    first_and_second = [lambda told, refused: told(50), lambda told, refused: refused("the connection is gone")]

    def log_in(
        say: Callable[[Message, Then], None], told: Callable[[int], None], refused: Callable[[str], None]
    ) -> None:
        first_and_second.pop(0)(told, refused)

    async def test(_: SocketPeers, to: Address) -> None:
        loop = asyncio.get_running_loop()
        peers = SocketPeers(loop, "test", lambda lane: Way(log_in=log_in))
        try:
            await peers.ask(to, messages.MetadataRequest(), timeout_ms=60_000)
            late = loop.time() + 0.05
            while loop.time() < late:
                """The loop has no turn meanwhile."""
            with pytest.raises(Unreachable, match="the connection is gone"):
                await asyncio.wait_for(peers.ask(to, messages.MetadataRequest(), timeout_ms=60_000), 30)
        finally:
            peers.close()

    run(_metadata, test)


def test_a_lane_that_is_stuck_does_not_hold_up_another() -> None:
    async def answer(key: int, version: int, correlation: int, writer: asyncio.StreamWriter) -> None:
        if key == 3:
            await _metadata(key, version, correlation, writer)

    async def test(peers: SocketPeers, to: Address) -> None:
        stuck: list[Outcome] = []
        peers.send(
            to, messages.FindCoordinatorRequest(coordinator_keys=["k"]), stuck.append, timeout_ms=60_000, lane="slow"
        )
        answer: Message = await peers.ask(to, messages.MetadataRequest(), timeout_ms=5_000, lane="quick")
        assert isinstance(answer, messages.MetadataResponse)
        assert stuck == []

    run(answer, test)


def test_nobody_listening_is_told_and_the_next_request_tries_again() -> None:
    async def test() -> None:
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        to = Address("127.0.0.1", taken.getsockname()[1])
        peers = SocketPeers(asyncio.get_running_loop(), "test")
        for _ in range(2):
            with pytest.raises(Refused, match="cannot connect"):
                await peers.ask(to, messages.MetadataRequest(), timeout_ms=5_000)
        peers.close()
        taken.close()

    asyncio.run(test())


def test_closing_gives_everyone_an_outcome() -> None:
    async def test(peers: SocketPeers, to: Address) -> None:
        outcomes: list[Outcome] = []
        peers.send(to, messages.MetadataRequest(), outcomes.append, timeout_ms=60_000)
        peers.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [type(outcome) for outcome in outcomes] == [Unreachable]

    run(_nothing, test)
