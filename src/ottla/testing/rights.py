"""Rights of users in a cluster under test, by the words that people use for them."""

from collections.abc import Sequence
from typing import Final

from ottla.metadata.acls import acl_of
from ottla.model.acls import Acl, PermissionType
from ottla.model.errors import Errors
from ottla.node.node import Node
from ottla.protocol import messages
from ottla.security import words

ALLOW: Final = PermissionType.ALLOW
DENY: Final = PermissionType.DENY
EVERYTHING: Final = ("all topic:* group:* transactional-id:* cluster",)
NONE_HERE: Final = (
    'this cluster allows everything to everybody: make it with Cluster(security="SASL_PLAINTEXT"), or with '
    'authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer" and super_users'
)
_ANY: Final = 1


def given(user: str, what: Sequence[str], permission: PermissionType) -> list[Acl]:
    """Raises ValueError for what is not understood."""
    who = words.principal(user)
    found: list[Acl] = []
    for text in what:
        wanted, host = words.phrase(text)
        found += words.acls(who, wanted, permission, host)
    return list(dict.fromkeys(found))


def decide(node: Node) -> bool:
    """Whether rights count at all."""
    return bool(node.settings.get_str("authorizer.class.name"))


def of(node: Node, user: str) -> list[Acl]:
    who = words.principal(user)
    return [acl for record in node.control_plane.image.acls.values() if (acl := acl_of(record)).principal == who]


async def create(node: Node, acls: Sequence[Acl]) -> None:
    request = messages.CreateAclsRequest([messages.CreateAclsRequest.AclCreation(*acl) for acl in acls])
    for result in (await node.control_plane.submit(request)).results:
        if result.error_code:
            raise ValueError(f"{Errors(result.error_code).name}: {result.error_message}")


async def forget(node: Node, user: str | None = None) -> None:
    """All of them, or all of one."""
    if node.control_plane.image.acls:
        who = None if user is None else words.principal(user)
        every = messages.DeleteAclsRequest.DeleteAclsFilter(_ANY, None, _ANY, who, None, _ANY, _ANY)
        await node.control_plane.submit(messages.DeleteAclsRequest([every]))


def has(node: Node, acls: Sequence[Acl]) -> bool:
    there = {acl_of(record) for record in node.control_plane.image.acls.values()}
    return all(acl in there for acl in acls)


def sentences(node: Node) -> list[str]:
    found = sorted(acl_of(record) for record in node.control_plane.image.acls.values())
    return [words.sentence(acl) for acl in sorted(found, key=lambda acl: acl.permission)]
