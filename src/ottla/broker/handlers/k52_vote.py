"""Vote: a candidate for the lead of the metadata log asks for this node's vote."""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
