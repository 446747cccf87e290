"""Who waits for the end of a transaction: its last marker is a matter of milliseconds."""

from asyncio import AbstractEventLoop, Future, wait


class Endings:
    __slots__ = ("_awaited", "_loop")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._awaited: dict[str, list[Future[None]]] = {}

    def is_awaited(self, transactional_id: str) -> bool:
        return transactional_id in self._awaited

    def tell(self, transactional_id: str) -> None:
        for ended in self._awaited.pop(transactional_id, ()):
            ended.set_result(None)

    async def next(self, transactional_id: str, within_ms: int) -> None:
        """Returns when it has ended, or then: it may end elsewhere. Each waits for itself: who goes away first takes
        nothing from the others."""
        ended: Future[None] = self._loop.create_future()
        self._awaited.setdefault(transactional_id, []).append(ended)
        try:
            await wait((ended,), timeout=within_ms / 1000)
        finally:
            if not ended.done():
                self._awaited[transactional_id].remove(ended)
                if not self._awaited[transactional_id]:
                    del self._awaited[transactional_id]
