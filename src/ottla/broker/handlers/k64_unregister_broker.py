"""UnregisterBroker: a broker that will not come back leaves the cluster (KIP-631).

Version 0 only.
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
