"""UpdateRaftVoter: a voter has other listeners than the metadata log says.

Version 0 only.
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
