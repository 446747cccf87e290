"""ControllerRegistration: a controller says where it listens and what it supports (KIP-919).

Version 0 only.
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
