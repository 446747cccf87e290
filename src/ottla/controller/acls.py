"""CreateAcls and DeleteAcls: what is written into the log, and what never may be.

Kafka stops at an entry that is logged twice under two ids, at the removal of an id that it does not know, and at a
principal without a colon: none of these leaves here. An entry that is there already is no error and no record.
"""

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from ottla.controller.decision import Decision
from ottla.controller.refusal import Refusal
from ottla.metadata.acls import acl_of, record_of
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.acls import ANY, MATCH, Acl, AclFilter, Pattern, PermissionType
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.model.permissions import CLUSTER_NAME, Operation, Resource
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

MAX_CHANGES: Final = 10_000
"""In one request, as in Kafka: all of them are appended at once."""

_RESOURCES: Final = frozenset(Resource)
_PATTERNS: Final = frozenset(Pattern)
_OPERATIONS: Final = frozenset(Operation)
_PERMISSIONS: Final = frozenset(PermissionType)
"""Looked into for each of thousands of entries in one request."""

Creation: TypeAlias = "messages.CreateAclsRequest.AclCreation"
Filter: TypeAlias = "messages.DeleteAclsRequest.DeleteAclsFilter"
FilterResult: TypeAlias = "messages.DeleteAclsResponse.DeleteAclsFilterResult"


class AclBook:
    """The id of each entry. An entry that several ids have, which a damaged log may hold, goes with all of them.

    Tools delete by hundreds of filters at once, one for each name or user: where a filter says either, only entries
    with it are looked at. Each of the others looks at all that there are.
    """

    __slots__ = ("_by_name", "_by_principal", "_ids")

    def __init__(self, image: MetadataImage) -> None:
        self._ids: dict[Acl, tuple[Uuid, ...]] = {}
        self._by_name: dict[str, dict[Acl, None]] = {}
        self._by_principal: dict[str, dict[Acl, None]] = {}
        for acl_id, record in image.acls.items():
            self._note(acl_id, acl_of(record))

    def _note(self, acl_id: Uuid, acl: Acl) -> None:
        known = self._ids.get(acl, ())
        self._ids[acl] = (*known, acl_id)
        if not known:
            self._by_name.setdefault(acl.name, {})[acl] = None
            self._by_principal.setdefault(acl.principal, {})[acl] = None

    def _forget(self, acl_id: Uuid, acl: Acl) -> None:
        left = tuple(each for each in self._ids[acl] if each != acl_id)
        if left:
            self._ids[acl] = left
            return
        del self._ids[acl]
        for index, key in ((self._by_name, acl.name), (self._by_principal, acl.principal)):
            del index[key][acl]
            if not index[key]:
                del index[key]

    def follow(self, delta: MetadataDelta) -> None:
        for acl_id, record in delta.changed_acls.items():
            before = delta.base.acls.get(acl_id)
            if before is not None:
                self._forget(acl_id, acl_of(before))
            if record is not None:
                self._note(acl_id, acl_of(record))

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._ids

    def ids(self, acl: Acl) -> tuple[Uuid, ...]:
        return self._ids[acl]

    def matching(self, wanted: AclFilter) -> list[Acl]:
        exactly = exact(wanted)
        if exactly is not None:
            return [exactly] if exactly in self._ids else []
        return [acl for acl in self.candidates(wanted) if wanted.matches(acl)]

    def candidates(self, wanted: AclFilter) -> Collection[Acl]:
        """Those that have to be looked at."""
        found: list[Collection[Acl]] = [self._ids]
        if wanted.name is not None and wanted.pattern != MATCH:
            found.append(self._by_name.get(wanted.name, ()))
        if wanted.principal is not None:
            found.append(self._by_principal.get(wanted.principal, ()))
        return min(found, key=len)


def exact(wanted: AclFilter) -> Acl | None:
    """The one entry that a filter can find, if it leaves nothing open: tools delete what they listed, one by one."""
    resource, name, pattern, principal, host, operation, permission = wanted
    if name is None or principal is None or host is None or pattern == MATCH:
        return None
    return None if ANY in (resource, pattern, operation, permission) else Acl(*wanted)  # type: ignore[arg-type]


def create_acls(
    book: AclBook, command: "messages.CreateAclsRequest", fresh_ids: Sequence[Uuid]
) -> "Decision[messages.CreateAclsResponse]":
    """One fresh id for each entry of the request."""
    kind = messages.CreateAclsResponse
    if len(command.creations) > MAX_CHANGES:
        refusal = _too_many("creates")
        return Decision(kind(results=[_created(refusal) for _ in command.creations]))
    new: dict[Acl, Uuid] = {}
    results = []
    for creation, acl_id in zip(command.creations, fresh_ids, strict=True):
        acl = acl_of_creation(creation)
        why_not = refusal_of(acl)
        results.append(_created(why_not))
        if why_not is None and acl not in book and acl not in new:
            new[acl] = acl_id
    records: list[MetadataRecord] = [record_of(acl_id, acl) for acl, acl_id in new.items()]
    return Decision(kind(results=results), tuple(records))


def _created(refusal: Refusal | None) -> "messages.CreateAclsResponse.AclCreationResult":
    kind = messages.CreateAclsResponse.AclCreationResult
    if refusal is None:
        return kind(error_message=None)
    return kind(error_code=refusal.error, error_message=refusal.message)


def acl_of_creation(creation: Creation) -> Acl:
    return Acl(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def refusal_of(acl: Acl) -> Refusal | None:
    """What cannot be written down. Operations that do not fit the type can, as in Kafka: they allow nothing."""
    if acl.resource not in _RESOURCES:
        why = f"{acl.resource} is no type of resource that can be protected"
    elif acl.pattern not in _PATTERNS:
        why = f"{acl.pattern} is no type of pattern: LITERAL (3) and PREFIXED (4) are"
    elif acl.operation not in _OPERATIONS:
        why = f"{acl.operation} is no operation that can be allowed or denied"
    elif acl.permission not in _PERMISSIONS:
        why = f"{acl.permission} is neither DENY (2) nor ALLOW (3)"
    elif not acl.name:
        why = "the name of the resource is empty"
    elif acl.resource == Resource.CLUSTER and acl.name != CLUSTER_NAME:
        why = f"the cluster's only name is {CLUSTER_NAME}, not {acl.name}"
    elif ":" not in acl.principal:
        why = f"the principal {acl.principal!r} has no type: User:{acl.principal} is meant?"
    else:
        return None
    return Refusal(Errors.INVALID_REQUEST, why)


def _too_many(verb: str) -> Refusal:
    return Refusal(
        Errors.INVALID_REQUEST,
        f"one request {verb} {MAX_CHANGES} entries at most, and this would be more: nothing is done",
    )


def delete_acls(book: AclBook, command: "messages.DeleteAclsRequest") -> "Decision[messages.DeleteAclsResponse]":
    """Each filter is told what it found, in the order of the request; an entry that two of them find goes once."""
    kind = messages.DeleteAclsResponse
    gone: dict[Acl, None] = {}
    results: list[FilterResult] = []
    for each in command.filters:
        wanted = filter_of(each)
        refusal = filter_refusal(wanted)
        if refusal is not None:
            results.append(kind.DeleteAclsFilterResult(error_code=refusal.error, error_message=refusal.message))
            continue
        found = book.matching(wanted)
        gone.update(dict.fromkeys(found))
        if len(gone) > MAX_CHANGES:
            refusal = _too_many("deletes")
            return Decision(
                kind(
                    filter_results=[
                        kind.DeleteAclsFilterResult(error_code=refusal.error, error_message=refusal.message)
                        for _ in command.filters
                    ]
                )
            )
        results.append(kind.DeleteAclsFilterResult(error_message=None, matching_acls=[_deleted(acl) for acl in found]))
    records: list[MetadataRecord] = [
        messages.RemoveAccessControlEntryRecord(acl_id) for acl in gone for acl_id in book.ids(acl)
    ]
    return Decision(kind(filter_results=results), tuple(records))


def _deleted(acl: Acl) -> "messages.DeleteAclsResponse.DeleteAclsMatchingAcl":
    return messages.DeleteAclsResponse.DeleteAclsMatchingAcl(0, None, *acl)


def filter_of(asked: "Filter | messages.DescribeAclsRequest") -> AclFilter:
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def filter_refusal(wanted: AclFilter) -> Refusal | None:
    if wanted.resource != ANY and wanted.resource not in _RESOURCES:
        why = f"{wanted.resource} is no type of resource"
    elif wanted.pattern not in (ANY, MATCH) and wanted.pattern not in _PATTERNS:
        why = f"{wanted.pattern} is no type of pattern"
    elif wanted.operation != ANY and wanted.operation not in _OPERATIONS:
        why = f"{wanted.operation} is no operation"
    elif wanted.permission != ANY and wanted.permission not in _PERMISSIONS:
        why = f"{wanted.permission} is neither DENY (2) nor ALLOW (3)"
    else:
        return None
    return Refusal(Errors.INVALID_REQUEST, why)
