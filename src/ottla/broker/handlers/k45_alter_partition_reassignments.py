"""AlterPartitionReassignments: partitions move to other brokers, or stop moving (KIP-455)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
