"""FetchSnapshot: a replica that is too far behind the metadata log reads a snapshot of it."""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
