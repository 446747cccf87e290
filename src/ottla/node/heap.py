"""What lives as long as the node is kept out of the collector's way.

Python's collector walks all that it knows of now and then, in one go: with ten thousand partitions it holds the loop
for a tenth of a second. What the node has at its start is frozen there; this is for what comes later, partitions above
all. Only a process that is the node's own may do so (`node.process`): it is a matter of the whole process.
"""

import asyncio
import gc
from collections.abc import Callable
from typing import Final

MANY: Final = 1_000
"""Partitions, of which each is some forty objects: to walk these takes a few milliseconds."""


def settled() -> None:
    """What is alive now is likely to live on: it is not walked again. What dies goes as ever, when nobody holds it any
    more; only rings of objects would stay, and what a node makes and drops in numbers, as connections, has none."""
    gc.collect(1)  # what is young and of no use any more does not have to stay; to walk the old is what is to be spared
    gc.freeze()


class Growth:
    """Tells when many partitions have come."""

    __slots__ = ("_count", "_loop", "_settled")

    def __init__(self, loop: asyncio.AbstractEventLoop, settled: Callable[[], None]) -> None:
        self._loop = loop
        self._settled = settled
        self._count = 0

    def one_more(self) -> None:
        self._count += 1
        if self._count >= MANY:
            self._count = 0
            self._loop.call_soon(self._settled)
