"""AllocateProducerIds: a broker needs another thousand of them (KIP-730).

Version 0 only.
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
