"""ListPartitionReassignments: which partitions are moving (KIP-455).

Version 0 only.
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
