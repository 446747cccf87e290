"""AlterPartitionReassignments: partitions move to other brokers, or stop moving (KIP-455).

Versions 0 and 1. 1 may forbid to change the number of replicas (KIP-860).
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
