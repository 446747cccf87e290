"""BrokerRegistration: a broker that has started asks to be taken in (KIP-631)."""

from ottla.broker.handlers.controlled import NEEDS, handle

__all__ = ["NEEDS", "handle"]
