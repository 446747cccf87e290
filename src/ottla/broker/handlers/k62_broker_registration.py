"""BrokerRegistration: a broker that has started asks to be taken in (KIP-631).

Versions 0 to 4. 1 was for the move from ZooKeeper; 2 tells directories (KIP-858); 3 the epoch that the broker had
before (KIP-966); 4 features that start at level 0 (KAFKA-17011).
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
