"""AssignReplicasToDirs: a broker says which of its replicas is in which directory (KIP-858).

Version 0 only.
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
