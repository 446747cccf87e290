"""Delegation tokens as the metadata log keeps them: all but the secret, which every node can make (KIP-48)."""

import hmac


def token_hmac(secret: str, token_id: str) -> bytes:
    """What whoever was given a token shows; never stored. 64 bytes."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")
