"""ControllerRegistration: a controller says where it listens and what it supports (KIP-919)."""

from ottla.broker.handlers.controlled import NEEDS, handle

__all__ = ["NEEDS", "handle"]
