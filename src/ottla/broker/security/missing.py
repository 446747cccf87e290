"""What a refusal says where an answer has room for words: the missing permission, and the command that gives it.

It is made of what the client itself has said, so it tells nothing of whether the thing exists.
"""

from collections.abc import Sequence

from ottla.broker.security.authorizer import May
from ottla.model.permissions import CLUSTER_NAME, RESOURCE_NAMES, Operation, Permission, Resource


def missing(principal: str, any_of: Sequence[Permission], name: str) -> str:
    """Any one of these would do; the last is the narrowest, as the one to ask for."""
    needed = " or ".join(
        f"{each.operation.name} on {RESOURCE_NAMES[each.resource]} {_named(each, name)}" for each in any_of
    )
    return f"{principal} needs {needed}{how(principal, any_of[-1], name)}"


def how(principal: str, permission: Permission, name: str) -> str:
    """The end of the sentence; nothing where no command would do it."""
    from ottla.security.words import granting  # noqa: PLC0415  only who is refused pays for it

    command = granting(principal, permission, name) if name or permission.resource is Resource.CLUSTER else None
    return "" if command is None else f"; allow it with: {command}"


def missing_if_seen(principal: str, sees: May, needed: Permission, name: str) -> str | None:
    """For a name that the client has not said itself, but an id."""
    if not sees(Operation.DESCRIBE, needed.resource, name):
        return None
    return missing(principal, (needed,), name)


def _named(permission: Permission, name: str) -> str:
    return CLUSTER_NAME if permission.resource is Resource.CLUSTER else name
