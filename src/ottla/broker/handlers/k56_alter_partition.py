"""AlterPartition: a leader asks the active controller for another ISR (KIP-497)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
