"""A controller's listener is open before the ACLs are read: until then super users are served and nobody else."""

from types import SimpleNamespace

import pytest

from ottla.broker.front.client import Client
from ottla.broker.front.dispatch import load_route
from ottla.broker.security.authorizer import AllowAll, Underway
from ottla.model.errors import Errors
from ottla.protocol import messages as m
from ottla.protocol.apis import Entrance, ListenerType, entrances

ENTRANCES = {entrance.api.key: entrance for entrance in entrances(ListenerType.CONTROLLER)}
NEEDY = [key for key, entrance in ENTRANCES.items() if entrance.needs is not None]


class Unread(AllowAll):
    """It allows everything, once it is ready."""

    def is_ready_for(self, principal: str) -> bool:
        return principal == "User:boss"


def is_served(entrance: Entrance, principal: str) -> bool:
    authorizer = Unread()
    route = load_route(entrance, is_early=True)
    client = Client.known_as(principal, "127.0.0.1", "CONTROLLER", authorizer, Underway())
    try:
        outcome = route.handle(
            SimpleNamespace(authorizer=authorizer),
            SimpleNamespace(client=client),
            m.request_class(entrance.api.key)(),
            entrance.max_version,
        )
    except (AttributeError, RuntimeError):
        return True  # a handler that needs more of a node than there is here
    if not isinstance(outcome, m.response_class(entrance.api.key)):
        outcome.close()
        return True
    return getattr(outcome, "error_code", Errors.UNKNOWN_SERVER_ERROR) != Errors.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("key", NEEDY)
def test_until_the_acls_are_read_only_super_users_are_served(key: int) -> None:
    assert [is_served(ENTRANCES[key], who) for who in ("User:alice", "User:boss")] == [False, True]


def test_what_is_told_to_everybody_is_told_at_once() -> None:
    assert is_served(ENTRANCES[18], "User:alice")
