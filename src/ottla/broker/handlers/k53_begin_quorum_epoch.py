"""BeginQuorumEpoch: the new leader of the metadata log says so.

Versions 0 and 1. 1 is flexible and tells the leader's endpoints (KIP-853).
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
