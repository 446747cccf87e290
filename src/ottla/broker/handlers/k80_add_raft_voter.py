"""AddRaftVoter: a controller joins the voters on the metadata log.

Versions 0 and 1. 1 may be answered before the change is committed (KIP-1186).
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
