"""Connectors as users may write them: one that never returns, one that raises what no connector should, and one that
leaks until the kernel ends its process."""

import os
import signal
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


class Leaks(spi.Sink[Config]):
    def write(self, batch: spi.Batch) -> spi.Verdicts:
        os.kill(os.getpid(), signal.SIGKILL)
        return ()
