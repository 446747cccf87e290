"""ListPartitionReassignments: which partitions are moving (KIP-455)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
