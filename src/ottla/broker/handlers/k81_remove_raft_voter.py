"""RemoveRaftVoter: a controller leaves the voters on the metadata log."""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
