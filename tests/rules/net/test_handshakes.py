"""Handshakes: bounded in time and number, and what comes instead of one is recognised."""

import asyncio
import select
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.net.handshakes import HandshakeFailed, Handshakes, Spoke, connected
from ottla.net.secured import Secured
from tests.support.certificates import authority, client_context, issued, server_context, stranger
from tests.support.tls_peer import TlsPeer

LONG_S = 30.0


class Door:
    """A server's half-open handshakes and what became of them."""

    def __init__(
        self, timeout_s: float = LONG_S, most: int = 100, context: ssl.SSLContext | None = None, turn_s: float = LONG_S
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.handshakes = Handshakes(self.loop, timeout_s, most, turn_s)
        self.done: list[Secured] = []
        self.failed: list[HandshakeFailed] = []
        self._context = context or server_context()
        self._changed = asyncio.Event()

    def come(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self.handshakes.begin(ours, self._context, self._succeeded, self._failed)
        return theirs

    def _succeeded(self, secured: Secured) -> None:
        self.done.append(secured)
        self._changed.set()

    def _failed(self, failure: HandshakeFailed) -> None:
        self.failed.append(failure)
        self._changed.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONG_S):
            while not reached():
                self._changed.clear()
                await self._changed.wait()


def test_a_handshake_that_is_not_done_in_time_is_given_up() -> None:
    async def scenario() -> tuple[str, int, bytes]:
        door = Door(timeout_s=0.05)
        with door.come() as silent:
            await door.until(lambda: bool(door.failed))
            return str(door.failed[0]), door.handshakes.half_open, silent.recv(1)

    assert asyncio.run(scenario()) == ("its handshake was not done within 0.05 s", 0, b"")


def test_a_hello_that_drips_in_has_no_more_time() -> None:
    async def scenario() -> str:
        door = Door(timeout_s=0.2)
        with door.come() as slow:
            for byte in b"\x16\x03\x01\x02\x00":
                await door.loop.sock_sendall(slow, bytes([byte]))
                await asyncio.sleep(0)
            await door.until(lambda: bool(door.failed))
        return str(door.failed[0])

    assert asyncio.run(scenario()) == "its handshake was not done within 0.2 s"


def test_of_too_many_half_open_handshakes_the_oldest_is_given_up() -> None:
    async def scenario() -> tuple[list[bool], int]:
        door = Door(most=3)
        silent = [door.come() for _ in range(5)]
        await door.until(lambda: len(door.failed) == 2)
        ended = [await _has_ended(each) for each in silent]
        half_open = door.handshakes.half_open
        door.handshakes.close()
        for each in silent:
            each.close()
        return ended, half_open

    assert asyncio.run(scenario()) == ([True, True, False, False, False], 3)


async def _has_ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False


def test_who_means_it_gets_in_although_others_hold_all_places() -> None:
    async def scenario() -> int:
        door = Door(most=2)
        silent = [door.come() for _ in range(2)]
        with door.come() as theirs:
            await TlsPeer(theirs, client_context()).handshake()
            await door.until(lambda: bool(door.done))
        door.handshakes.close()
        for sock in silent:
            sock.close()
        for secured in door.done:
            secured.close()
        return len(door.done)

    assert asyncio.run(scenario()) == 1


def test_of_many_who_come_at_once_a_turn_of_the_loop_takes_some_and_the_next_the_others() -> None:
    async def scenario() -> list[int]:
        door = Door(turn_s=0)  # the first of a turn is always taken
        loop, peers = door.loop, [door.come() for _ in range(20)]
        for peer in peers:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
            peer.sendall(outgoing.read())
        answered, unanswered, by_turn = asyncio.Event(), set(peers), []

        def turn() -> None:
            told = {peer for peer in unanswered if select.select([peer], [], [], 0)[0]}
            unanswered.difference_update(told)
            by_turn.append(len(told))
            if unanswered:
                loop.call_soon(turn)
            else:
                answered.set()

        loop.call_soon(turn)
        await asyncio.wait_for(answered.wait(), LONG_S)
        door.handshakes.close()
        for peer in peers:
            peer.close()
        return by_turn

    by_turn = asyncio.run(scenario())
    assert (sum(by_turn), max(by_turn)) == (20, 1)


@pytest.mark.parametrize(
    ("first", "spoke"),
    [
        (b"\x00\x00\x00\x2a\x00\x12\x00\x03", Spoke.KAFKA),
        (b"GET / HTTP/1.1\r\n", Spoke.HTTP),
        (b"SSH-2.0-OpenSSH", Spoke.UNKNOWN),
        (b"\xff\xff\xff\xff", Spoke.UNKNOWN),
    ],
)
def test_what_is_no_tls_is_recognised_by_its_first_bytes(first: bytes, spoke: Spoke) -> None:
    async def scenario() -> Spoke:
        door = Door()
        with door.come() as theirs:
            await door.loop.sock_sendall(theirs, first)
            await door.until(lambda: bool(door.failed))
        return door.failed[0].spoke

    assert asyncio.run(scenario()) is spoke


def test_who_closes_without_a_word_is_no_failed_handshake() -> None:
    async def scenario() -> tuple[Spoke, bool]:
        door = Door()
        door.come().close()
        await door.until(lambda: bool(door.failed))
        return door.failed[0].spoke, door.failed[0].late

    assert asyncio.run(scenario()) == (Spoke.NOTHING, False)


async def _refusal(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> tuple[str, str]:
    """What the server's side and the client's side say."""
    door = Door(context=server)
    theirs = door.come()
    told = ""
    try:
        secured = await connected(door.loop, theirs, client, host, LONG_S)
        try:  # TLS 1.3: what a server thinks of a client comes after the client is done
            await asyncio.wait_for(_alert(secured), LONG_S)
        finally:
            secured.close()
    except HandshakeFailed as failure:
        told = str(failure)
    await door.until(lambda: bool(door.failed or door.done))
    for each in door.done:
        each.close()
    return str(door.failed[0]) if door.failed else "", told


async def _alert(secured: Secured) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            if not secured.tls.read(1):
                return
        except ssl.SSLWantReadError:
            data = await loop.sock_recv(secured.sock, 4096)
            if not data:
                return
            secured.incoming.write(data)
        except OSError:
            return


def test_a_certificate_of_a_strange_authority_is_named_as_that_by_both_sides() -> None:
    untrusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger().configure_trust(untrusting)
    ours, theirs = asyncio.run(_refusal(server_context(), untrusting))
    assert ours.startswith("the other side does not trust the authority that signed our certificate: that has to be")
    assert theirs.startswith("its certificate comes from an authority that is not in the trust store")


def test_a_certificate_for_other_names_is_refused_by_who_dialled() -> None:
    _, theirs = asyncio.run(_refusal(server_context(), client_context(), host="elsewhere.example"))
    assert theirs.startswith("its certificate is for other names")


def test_a_client_without_the_certificate_it_needs_is_told_apart() -> None:
    asking = server_context()
    asking.verify_mode = ssl.CERT_REQUIRED
    authority().configure_trust(asking)
    ours, _ = asyncio.run(_refusal(asking, client_context()))
    assert ours == "it showed no certificate, and ssl.client.auth=required asks for one"


def test_versions_that_are_left_out_are_refused() -> None:
    newest, older = server_context(), client_context()
    newest.minimum_version = ssl.TLSVersion.TLSv1_3
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    ours, theirs = asyncio.run(_refusal(newest, older))
    assert ours == "it offers protocol versions only that ssl.enabled.protocols leaves out"
    assert theirs == "the other side does not accept our protocol versions (ssl.enabled.protocols)"


def test_an_expired_certificate_is_named_as_that() -> None:
    expired = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    was_good: dict[str, Any] = {
        "not_before": datetime(2020, 1, 1, tzinfo=UTC),
        "not_after": datetime(2020, 2, 1, tzinfo=UTC),
    }
    issued(**was_good).configure_cert(expired)
    _, theirs = asyncio.run(_refusal(expired, client_context()))
    assert theirs.startswith("its certificate has expired")
