"""UpdateFeatures: finalizes feature levels (KIP-584)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
