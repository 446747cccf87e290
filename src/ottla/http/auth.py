"""Who calls, and what it may: the hook that each service is given.

The room knows how credentials travel, not who may do what. A `Doorkeeper` is asked twice for each request: who this is,
before anything is read, and whether it may, when the route is known.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ottla.http.problems import Problem

if TYPE_CHECKING:
    from ottla.http.call import Call


@dataclass(frozen=True, slots=True)
class Caller:
    principal: str
    """As ACLs name it: `User:alice`."""
    host: str


class Doorkeeper(Protocol):
    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        """Raises Problem (401, with the challenge) for who does not say, or cannot prove, who it is."""

    def may(self, caller: Caller, need: object, call: "Call") -> bool:
        """`need` is what the route was declared with; what it is is between the service and its doorkeeper."""


class OpenDoor:
    """Everybody comes in and may do everything, as on a broker without an authorizer."""

    async def admit(self, headers: Mapping[str, str], host: str) -> Caller:
        return Caller("User:ANONYMOUS", host)

    def may(self, caller: Caller, need: object, call: "Call") -> bool:
        return True


OPEN_DOOR: Final = OpenDoor()


@dataclass(frozen=True, slots=True)
class Basic:
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Basic(user={self.user!r})"  # secrets never reach logs


@dataclass(frozen=True, slots=True)
class Bearer:
    token: str

    def __repr__(self) -> str:
        return "Bearer()"


def credentials(headers: Mapping[str, str]) -> Basic | Bearer | None:
    """Out of the Authorization header. None: there are none. Raises Problem for what cannot be read."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "":
            return None
        case "bearer":
            return Bearer(value.strip())
        case "basic":
            try:
                user, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                colon = ""
            if colon:
                return Basic(user, password)
            raise Problem(401, "The Authorization header is not base64 of user:password.", headers=challenge("Basic"))
    raise Problem(401, f"{scheme} is not offered for logging in; Basic and Bearer are.", headers=challenge("Basic"))


def challenge(scheme: str, realm: str = "ottla") -> dict[str, str]:
    return {"www-authenticate": f'{scheme} realm="{realm}"'}
