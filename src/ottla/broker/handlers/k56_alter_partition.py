"""AlterPartition: a leader asks the active controller for another ISR (KIP-497)."""

from ottla.broker.handlers.controlled import NEEDS, handle

__all__ = ["NEEDS", "handle"]
