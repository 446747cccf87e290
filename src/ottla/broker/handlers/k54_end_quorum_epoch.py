"""EndQuorumEpoch: the leader of the metadata log resigns.

Versions 0 and 1. 1 is flexible and names candidates with their directories (KIP-853).
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
