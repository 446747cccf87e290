"""DescribeQuorum: who votes on the metadata log, and how far each has come."""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
