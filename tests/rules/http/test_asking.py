import asyncio
from typing import Final

import pytest

from ottla.http.asking import NoAnswer, Reply, ask

_HEAD: Final = (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n", b"etag: x\r\n\r\n")


class OtherSide:
    """Each piece comes by itself, and the connection stays open."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = iter(pieces)

    async def read(self, size: int) -> bytes:
        piece = next(self._pieces, None)
        assert piece is not None, "it waits for more than there is"
        return piece

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def answered(monkeypatch: pytest.MonkeyPatch, method: str, *pieces: bytes) -> Reply:
    async def connected(*where: object, ssl: object) -> tuple[OtherSide, OtherSide]:
        other = OtherSide(*pieces)
        return other, other

    monkeypatch.setattr(asyncio, "open_connection", connected)
    return asyncio.run(ask("http://other:1", method, "/", {}, connect_s=30, answer_s=30))


def test_an_answer_in_pieces_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = answered(monkeypatch, "GET", *_HEAD, b"he", b"llo")
    assert reply == Reply(200, {"content-length": "5", "etag": "x"}, b"hello")


@pytest.mark.parametrize(
    "pieces", [(b"".join(_HEAD),), _HEAD, (_HEAD[0], _HEAD[1][:-2], b"\r\n")], ids=["one", "two", "three"]
)
def test_a_head_ends_with_itself_however_it_comes(monkeypatch: pytest.MonkeyPatch, pieces: tuple[bytes, ...]) -> None:
    assert answered(monkeypatch, "HEAD", *pieces) == Reply(200, {"content-length": "5", "etag": "x"}, b"")


def test_who_does_not_answer_in_time_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*where: object, ssl: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(asyncio, "open_connection", never)
    with pytest.raises(NoAnswer, match="http://other:1 cannot be reached: no answer in time"):
        asyncio.run(ask("http://other:1", "GET", "/", {}, connect_s=30, answer_s=30))
