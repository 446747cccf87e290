"""Producer ids for this node, taken from the controller in blocks (KIP-730)."""

from collections.abc import Awaitable, Callable


class ProducerIds:
    """`fetch_block` asks the controller for a block: its first id and its length, None if it gives none now."""

    __slots__ = ("_end", "_fetch_block", "_next")

    def __init__(self, fetch_block: Callable[[], Awaitable[tuple[int, int] | None]]) -> None:
        self._fetch_block = fetch_block
        self._next = 0
        self._end = 0

    def take(self) -> int | None:
        """An id of the block at hand, or None if it is used up."""
        if self._next >= self._end:
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def next(self) -> int | None:
        """None if there is none to be had now: who asked for it is told to try again."""
        while (producer_id := self.take()) is None:
            block = await self._fetch_block()
            if block is None:
                return None
            start, length = block
            if self._next >= self._end:  # else another request brought a block meanwhile: this one is left unused
                self._next, self._end = start, start + length
        return producer_id
