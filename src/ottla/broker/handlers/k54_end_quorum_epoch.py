"""EndQuorumEpoch: the leader of the metadata log resigns."""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
