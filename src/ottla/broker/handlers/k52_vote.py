"""Vote: a candidate for the lead of the metadata log asks for this node's vote.

Versions 0 to 2. 1 names voters with their directories (KIP-853); 2 may ask for a promise only (PreVote, KIP-996).
"""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
