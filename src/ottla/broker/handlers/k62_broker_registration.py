"""BrokerRegistration: a broker that has started asks to be taken in (KIP-631)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
