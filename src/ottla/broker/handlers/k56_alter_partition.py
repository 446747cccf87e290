"""AlterPartition: a leader asks the active controller for another ISR (KIP-497).

Versions 2 and 3. 2 names topics by id (KIP-841); 3 tells the broker epochs of the replicas (KIP-903).
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
