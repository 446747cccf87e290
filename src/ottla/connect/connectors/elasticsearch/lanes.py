"""Requests that are under way at once: the server works on some of them while the next ones are still being made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from ottla.connect.connectors.elasticsearch.bulk import Connection

Refusals = list[tuple[int, str]]
"""Places of documents, and why."""


class Lanes:
    """One for each connection. With one alone, requests come in the order in which they are given."""

    __slots__ = ("_connections", "_free", "_pool", "_under_way")

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for each in connections:
            self._free.put(each)
        self._pool = ThreadPoolExecutor(len(connections), thread_name_prefix="bulk")
        self._under_way: list[Future[Refusals]] = []

    def give(self, send: Callable[[Connection], Refusals]) -> None:
        self._under_way.append(self._pool.submit(self._sent, send))

    def refused(self) -> Refusals:
        """When all that was given has come back. Raises what the first of those that failed raised."""
        done, self._under_way = self._under_way, []
        failed = [error for each in done if (error := each.exception()) is not None]
        if failed:
            raise failed[0]
        return [told for each in done for told in each.result()]

    def wait(self) -> None:
        """For what is under way, whatever becomes of it."""
        for each in self._under_way:
            each.exception()
        self._under_way = []

    def close(self) -> None:
        self._pool.shutdown()
        for each in self._connections:
            each.close()

    def _sent(self, send: Callable[[Connection], Refusals]) -> Refusals:
        connection = self._free.get()
        try:
            return send(connection)
        finally:
            self._free.put(connection)
