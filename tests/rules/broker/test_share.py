"""What a connection is charged for time: all that the loop does for it, once, and nobody gets around it."""

import asyncio
from collections.abc import Iterable, Iterator

import pytest

from ottla.broker.front.client import ANONYMOUS, Client
from ottla.broker.front.share import Share
from ottla.broker.quotas.clients import ClientQuotas, Windows
from ottla.broker.security.authorizer import AllowAll, Underway
from ottla.model.ids import Millis
from ottla.net.connection import BY_OWNER, BY_QUOTA, Chunk
from ottla.protocol.messages import MetadataResponse

SECOND_US = 1_000_000
CLIENT = Client.known_as(ANONYMOUS, "10.0.0.1", "CLIENTS", AllowAll(), Underway())


class Line:
    """A connection and its clock, both in hand."""

    def __init__(self) -> None:
        self.us = 100 * SECOND_US
        self.out_bytes = 0
        self.last_active = 0.0
        self.paused = 0

    @property
    def reading_paused(self) -> bool:
        return self.paused != 0

    @property
    def is_held(self) -> bool:
        return self.paused == BY_QUOTA

    def seconds(self) -> float:
        return self.us / SECOND_US

    def us_since(self, then: float) -> int:
        return self.us - int(then * SECOND_US)

    def pause_reading(self, reason: int = BY_OWNER) -> None:
        self.paused |= reason

    def resume_reading(self, reason: int = BY_OWNER) -> None:
        self.paused &= ~reason

    def send(self, chunks: Iterable[Chunk]) -> None: ...

    def send_bytes(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    # The port of the clock.

    def monotonic(self) -> Millis:
        return Millis(self.us // 1000)

    def wall(self) -> Millis:
        return self.monotonic()


class Busy:
    """A client that may use ten per cent of the node: a second in the whole of the window."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        quotas = ClientQuotas(Windows(11, 1000), Windows(11, 1000), 100)
        quotas.set({(("client-id", None),): {"request_percentage": 10.0}})
        self.line = Line()
        self.share = Share(quotas, self.line, loop, self.line)

    def begun(self) -> None:
        assert self.share.is_of(CLIENT, "app")
        self.share.begin(0)

    def answered(self, took_us: int, *, exempt: bool = False) -> int:
        """A request that is answered at once: what its answer tells."""
        self.begun()
        self.line.us += took_us
        told = self.told(exempt=exempt)
        self.share.end()
        return told

    def told(self, *, exempt: bool = False) -> int:
        answer = MetadataResponse()
        self.share.answer(answer, exempt=exempt)
        return answer.throttle_time_ms


@pytest.fixture
def client() -> Iterator[Busy]:
    loop = asyncio.new_event_loop()  # it never runs: who is held stays so
    yield Busy(loop)
    loop.close()


def test_kip_124_a_request_that_is_answered_at_once_is_charged_behind_its_answer(client: Busy) -> None:
    assert client.answered(SECOND_US + 50_000) == 0
    assert not client.line.reading_paused
    assert client.answered(10) == 500
    assert client.line.is_held


def test_work_that_waits_in_between_is_charged_with_its_own_answer(client: Busy) -> None:
    client.begun()
    client.share.end()
    client.line.us += 5 * SECOND_US  # waits for something else
    client.share.step()
    client.line.us += SECOND_US + 50_000
    client.share.end()
    assert client.told() == 500


def test_what_nodes_do_for_each_other_is_charged_to_nobody(client: Busy) -> None:
    assert client.answered(9 * SECOND_US, exempt=True) == 0
    assert client.answered(10) == 0


def test_what_is_never_answered_is_free_and_makes_nothing_else_free(client: Busy) -> None:
    client.answered(SECOND_US + 50_000)
    client.begun()
    client.share.forgive()  # acks=0
    client.share.end()
    assert client.answered(10) == 500


def test_within_the_quota_nothing_is_told(client: Busy) -> None:
    assert [client.answered(1000) for _ in range(100)] == [0] * 100
    assert not client.line.reading_paused
