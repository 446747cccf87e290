"""AssignReplicasToDirs: a broker says which of its replicas is in which directory (KIP-858)."""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
