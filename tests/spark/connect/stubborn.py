"""Connectors as users may write them: one that never returns, and one that raises what no connector should."""

import threading

from ottla.connect import spi


class Config(spi.Config):
    topic: str = "stubborn"


class NeverReturns(spi.Source[Config]):
    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        threading.Event().wait()
        raise AssertionError("nobody sets it")


class Raises(spi.Source[Config]):
    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        raise SystemExit("enough")
