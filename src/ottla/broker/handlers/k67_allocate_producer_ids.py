"""AllocateProducerIds: a broker needs another thousand of them (KIP-730)."""

from ottla.broker.handlers.controlled import NEEDS, handle

__all__ = ["NEEDS", "handle"]
