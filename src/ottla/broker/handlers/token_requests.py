"""What the four requests about delegation tokens share (KIP-48)."""

from ottla.broker.front.client import ANONYMOUS, Client


def may_ask(client: Client) -> bool:
    """Not who has not said who he is, by a login or a certificate; and not by a token, which is another's word."""
    return client.principal != ANONYMOUS and not client.by_token
