"""Entries of the access control list as the metadata log writes them."""

from ottla.model.acls import Acl
from ottla.model.ids import Uuid
from ottla.protocol import messages


def acl_of(record: "messages.AccessControlEntryRecord") -> Acl:
    return Acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def record_of(acl_id: Uuid, acl: Acl) -> "messages.AccessControlEntryRecord":
    return messages.AccessControlEntryRecord(acl_id, *acl)
