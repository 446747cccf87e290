"""SCRAM credentials: who may log in, by which keys (KIP-554)."""

from collections.abc import Iterator
from typing import Final

from ottla.controller.decision import Decision
from ottla.metadata.image import MetadataImage, ScramKey
from ottla.metadata.scram import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_BY_TYPE, keys_of
from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

_FIRST_METADATA_VERSION: Final = 11
"""3.5-IV2."""

_Refusal = tuple[Errors, str]


def alter_credentials(
    image: MetadataImage, request: "messages.AlterUserScramCredentialsRequest"
) -> "Decision[messages.AlterUserScramCredentialsResponse]":
    """A user of whom one change is refused keeps all that he had."""
    refusals: dict[str, _Refusal | None] = {}
    for name, refusal in _judged(image, request):
        if refusals.get(name) is None:
            refusals[name] = refusal
    records: list[MetadataRecord] = [
        messages.RemoveUserScramCredentialRecord(name=each.name, mechanism=each.mechanism)
        for each in request.deletions
        if refusals[each.name] is None
    ]
    records += [_record(each) for each in request.upsertions if refusals[each.name] is None]
    kind = messages.AlterUserScramCredentialsResponse
    results = [
        kind.AlterUserScramCredentialsResult(user=name, error_message=None)
        if refusal is None
        else kind.AlterUserScramCredentialsResult(user=name, error_code=refusal[0], error_message=refusal[1])
        for name, refusal in refusals.items()
    ]
    return Decision(kind(results=results), tuple(records))


def _judged(
    image: MetadataImage, request: "messages.AlterUserScramCredentialsRequest"
) -> Iterator[tuple[str, _Refusal | None]]:
    """User by user, with what speaks against a change."""
    named: list[ScramKey] = [(each.mechanism, each.name) for each in request.deletions]
    named += [(each.mechanism, each.name) for each in request.upsertions]
    for each in request.deletions:
        yield each.name, _of_version(image) or _of_user(each.name, each.mechanism, named) or _deletion(image, each)
    for change in request.upsertions:
        yield change.name, _of_version(image) or _of_user(change.name, change.mechanism, named) or _upsertion(change)


def _of_version(image: MetadataImage) -> _Refusal | None:
    if image.metadata_version >= _FIRST_METADATA_VERSION:
        return None
    return Errors.UNSUPPORTED_VERSION, "The current metadata version does not support SCRAM."


def _of_user(name: str, mechanism: int, named: list[ScramKey]) -> _Refusal | None:
    if not name:
        return Errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if mechanism not in SCRAM_BY_TYPE:
        return Errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if named.count((mechanism, name)) > 1:
        return Errors.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    return None


def _deletion(
    image: MetadataImage, change: "messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion"
) -> _Refusal | None:
    if (change.mechanism, change.name) in image.scram:
        return None
    return Errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"


def _upsertion(change: "messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion") -> _Refusal | None:
    if change.iterations > MAX_ITERATIONS:
        return Errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    if change.iterations < MIN_ITERATIONS:
        return Errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    return None


def _record(change: "messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion") -> MetadataRecord:
    keys = keys_of(SCRAM_BY_TYPE[change.mechanism], bytes(change.salted_password))
    return messages.UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=keys.stored,
        server_key=keys.server,
        iterations=change.iterations,
    )
