"""DescribeQuorum: who votes on the metadata log, and how far each has come.

Versions 0 to 2. 1 tells when a replica last fetched and was last caught up (KIP-836); 2 directories and the nodes'
endpoints (KIP-853).
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
