"""ElectLeaders: the preferred replica, or any live one, is to lead (KIP-460).

Versions 0 to 2. 1 may elect what is not in sync, and has an error for the whole (KIP-460); 2 is flexible.
"""

from ottla.broker.handlers.decided import handle

__all__ = ["handle"]
