"""Rights of users in a cluster under test, by the words that people use for them."""

from collections.abc import Sequence
from typing import Final

from ottla.metadata.acls import acl_of
from ottla.model.acls import Acl, PermissionType
from ottla.model.errors import Errors
from ottla.node import Node
from ottla.protocol.messages import CreateAclsRequest, DeleteAclsRequest
from ottla.security import words

ALLOW: Final = PermissionType.ALLOW
DENY: Final = PermissionType.DENY
_ANY: Final = 1


def given(user: str, what: Sequence[str], permission: PermissionType) -> list[Acl]:
    """Raises ValueError for what is not understood."""
    who = words.principal(user)
    found: list[Acl] = []
    for text in what:
        wanted, host = words.phrase(text)
        found += words.acls(who, wanted, permission, host)
    return list(dict.fromkeys(found))


def check(node: Node) -> None:
    if not node.settings.get_str("authorizer.class.name"):
        raise ValueError(
            "this cluster allows everything to everybody: make it with Cluster(authorizer_class_name="
            '"org.apache.kafka.metadata.authorizer.StandardAuthorizer", super_users=...)'
        )


async def create(node: Node, acls: Sequence[Acl]) -> None:
    request = CreateAclsRequest([CreateAclsRequest.AclCreation(*acl) for acl in acls])
    for result in (await node.control_plane.submit(request)).results:
        if result.error_code:
            raise ValueError(f"{Errors(result.error_code).name}: {result.error_message}")


async def forget(node: Node) -> None:
    """All of them."""
    if node.control_plane.image.acls:
        every = DeleteAclsRequest.DeleteAclsFilter(_ANY, None, _ANY, None, None, _ANY, _ANY)
        await node.control_plane.submit(DeleteAclsRequest([every]))


def has(node: Node, acls: Sequence[Acl]) -> bool:
    there = {acl_of(record) for record in node.control_plane.image.acls.values()}
    return all(acl in there for acl in acls)


def sentences(node: Node) -> list[str]:
    found = sorted(acl_of(record) for record in node.control_plane.image.acls.values())
    return [words.sentence(acl) for acl in sorted(found, key=lambda acl: acl.permission)]
