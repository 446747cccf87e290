"""SCRAM credentials: who may log in, by which keys (KIP-554)."""

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.controller.decision import Decision
from ottla.metadata.image import MetadataImage
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
    """One change of a user in a request, as in Kafka: a second one, of another mechanism even, refuses both. A user of
    whom a change is refused keeps all that he had."""
    outcomes: dict[str, _Refusal | MetadataRecord] = {}
    for deletion in request.deletions:
        _note(outcomes, deletion.name, partial(_deleted, image, deletion))
    for upsertion in request.upsertions:
        _note(outcomes, upsertion.name, partial(_upserted, image, upsertion))
    kind = messages.AlterUserScramCredentialsResponse
    results = [
        kind.AlterUserScramCredentialsResult(user=name, error_code=outcome[0], error_message=outcome[1])
        if isinstance(outcome, tuple)
        else kind.AlterUserScramCredentialsResult(user=name, error_message=None)
        for name, outcome in outcomes.items()
    ]
    return Decision(kind(results=results), tuple(each for each in outcomes.values() if not isinstance(each, tuple)))


def _note(
    outcomes: dict[str, _Refusal | MetadataRecord], name: str, judge: Callable[[], _Refusal | MetadataRecord]
) -> None:
    """The first refusal stays."""
    before = outcomes.get(name)
    if before is None:
        outcomes[name] = judge()
    elif not isinstance(before, tuple):
        outcomes[name] = (
            Errors.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )


def _deleted(
    image: MetadataImage, change: "messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion"
) -> _Refusal | MetadataRecord:
    refusal = _of_version(image) or _of_user(change.name, change.mechanism) or _deletion(image, change)
    return refusal or messages.RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)


def _upserted(
    image: MetadataImage, change: "messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion"
) -> _Refusal | MetadataRecord:
    refusal = _of_version(image) or _of_user(change.name, change.mechanism) or _upsertion(change)
    return refusal or _record(change)


def _of_version(image: MetadataImage) -> _Refusal | None:
    if image.metadata_version >= _FIRST_METADATA_VERSION:
        return None
    return Errors.UNSUPPORTED_VERSION, "The current metadata version does not support SCRAM."


def _of_user(name: str, mechanism: int) -> _Refusal | None:
    if not name:
        return Errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if mechanism not in SCRAM_BY_TYPE:
        return Errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
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
