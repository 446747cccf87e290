"""DescribeUserScramCredentials: who can log in by SCRAM, and with how many iterations; never salts or keys (KIP-554).

Version 0 only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse


def handle(
    services: Services, session: Session, request: DescribeUserScramCredentialsRequest, version: int
) -> DescribeUserScramCredentialsResponse:
    known: dict[str, list[tuple[int, int]]] = {}
    for (mechanism, name), record in services.control_plane.image.scram.items():
        known.setdefault(name, []).append((mechanism, record.iterations))
    if not request.users:
        return _answer(_found(name, known[name]) for name in sorted(known))
    mentions = Counter(user.name for user in request.users)
    return _answer(_of_one(name, mentions, known) for name in mentions)


def _of_one(
    name: str, mentions: Mapping[str, int], known: dict[str, list[tuple[int, int]]]
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    if mentions[name] > 1:
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return _missing(name, Errors.DUPLICATE_RESOURCE, text)
    if name not in known:
        text = f"Attempt to describe a user credential that does not exist: {name}"
        return _missing(name, Errors.RESOURCE_NOT_FOUND, text)
    return _found(name, known[name])


def _answer(
    results: Iterable[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult],
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(results=list(results))


def _found(
    name: str, credentials: list[tuple[int, int]]
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    kind = DescribeUserScramCredentialsResponse
    infos = [kind.CredentialInfo(mechanism, iterations) for mechanism, iterations in sorted(credentials)]
    return kind.DescribeUserScramCredentialsResult(user=name, credential_infos=infos)


def _missing(
    name: str, error: Errors, text: str
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(
        user=name, error_code=error, error_message=text
    )
