"""FetchSnapshot: a replica that is too far behind the metadata log reads a snapshot of it.

Versions 0 and 1. 1 tells the replica's directory, and is told the leader's endpoint (KIP-853).
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
