"""ElectLeaders: the preferred replica, or any live one, is to lead (KIP-460)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
