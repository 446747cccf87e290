"""Exceptions that a connector raises on purpose. Any other is a fault of its own, and fails it."""

from __future__ import annotations


class ConnectorFailed(Exception):
    """It cannot go on. The text says why, and what to do."""


class TryAgain(Exception):
    """It may go better in a while: a target that is away, or asks for patience.

    Tried again with growing pauses for `errors.retry.timeout`; then the connector fails, and what it was about to do is
    done when it is started again.
    """

    def __init__(self, reason: str, *, after_s: float | None = None) -> None:
        """`after_s`: not before, as the other side has asked for."""
        self.after_s = after_s
        super().__init__(reason)


class BadRecord(Exception):
    """This record is no good: a dead letter, or the end of a connector that tolerates none."""
