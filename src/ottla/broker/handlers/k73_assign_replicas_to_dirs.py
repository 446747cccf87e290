"""AssignReplicasToDirs: a broker says which of its replicas is in which directory (KIP-858)."""

from ottla.broker.handlers.controlled import NEEDS, handle

__all__ = ["NEEDS", "handle"]
