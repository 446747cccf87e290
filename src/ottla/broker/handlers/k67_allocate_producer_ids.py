"""AllocateProducerIds: a broker needs another thousand of them (KIP-730)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
