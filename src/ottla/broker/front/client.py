"""Who is at the other end of a connection, and what he may do.

A value, made once for each connection and replaced as a whole when more is known of the client: nothing of it is worked
out for a request.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.broker.security.authorizer import Authorizer, May, Underway
from ottla.model.permissions import OPERATIONS, Operation, Resource

ANONYMOUS: Final = "User:ANONYMOUS"
NOBODY: Final = "unknown"
"""In the audit log, of who could not prove who it is: whom it claimed to be stands in the reason."""


class Client(NamedTuple):
    principal: str
    host: str
    listener: str
    """The name of the one it came by: who asks for addresses is told those of the same."""
    may: May
    """may(operation, resource, name): asks the authorizer in the name of this client."""
    sees: May
    """The same in passing: see `Rights.sees`."""
    may_somewhere: Callable[[Operation, Resource], bool]
    elsewhere: May
    """As `sees`, in another thread."""
    software_name: str = ""
    software_version: str = ""
    """As it calls itself (KIP-511); empty before it has."""
    by_token: bool = False
    """It logged in by a delegation token (KIP-48)."""

    @classmethod
    def known_as(cls, principal: str, host: str, listener: str, authorizer: Authorizer, underway: Underway) -> "Client":
        return cls(principal, host, listener, *authorizer.for_client(principal, host, underway))

    def logged_in(self, principal: str, authorizer: Authorizer, underway: Underway, *, by_token: bool) -> "Client":
        """The same client, now that it has shown who it is."""
        known = Client.known_as(principal, self.host, self.listener, authorizer, underway)
        return known._replace(
            software_name=self.software_name, software_version=self.software_version, by_token=by_token
        )

    def operations(self, resource: Resource, name: str) -> int:
        """All that it may do there, as the bit field of KIP-430; none if it may not even look."""
        if not self.sees(Operation.DESCRIBE, resource, name):
            return 0
        return sum(1 << operation for operation in OPERATIONS[resource] if self.sees(operation, resource, name))


def note_login(
    authorizer: Authorizer, principal: str, host: str, listener: str, mechanism: str, failure: str = ""
) -> None:
    """For the audit log, where no conversation led to it: by a certificate, or at the node's own pages."""
    client = Client.known_as(principal, host, listener, authorizer, Underway())
    authorizer.logged_in(principal, client, mechanism, failure)
