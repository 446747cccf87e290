"""BeginQuorumEpoch: the new leader of the metadata log says so."""

from ottla.broker.handlers.quorum import handle

__all__ = ["handle"]
