"""RemoveRaftVoter: a controller leaves the voters on the metadata log.

Version 0 only.
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
