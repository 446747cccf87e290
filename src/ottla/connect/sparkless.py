"""A worker where Spark is not installed: everything answers but connectors, which say what is missing."""

from collections.abc import Mapping
from typing import Any, Final

from ottla.connect.orders import Event, Listener, Order, Report

ADVICE: Final = (
    "Connectors run on Spark, which is not installed here: pip install 'ottla[streams]' (in a checkout: make streams), "
    "and start the worker again"
)


class SparklessRunner:
    __slots__ = ("_listener",)

    def __init__(self) -> None:
        self._listener: Listener = lambda _: None

    def listen(self, listener: Listener) -> None:
        self._listener = listener

    async def start(self, order: Order, resolved: Mapping[str, str | None]) -> None:
        self._listener(Report(order.connector, order.epoch, Event.FAILED, ADVICE))

    async def stop(self, connector: str) -> None:
        pass

    async def forget(self, connector: str) -> None:
        pass

    def stand_by(self) -> None:
        pass

    async def progress(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    async def close(self) -> None:
        pass
