"""UpdateFeatures: finalizes feature levels (KIP-584).

Versions 0 to 2. 1 says what kind of change it is and may only try it (KIP-778); 2 is answered for the whole, not for
each feature (KIP-1022).
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
