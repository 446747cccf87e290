"""AlterUserScramCredentials: makes users that log in by SCRAM, gives them other passwords, removes them (KIP-554).

Version 0 only. The client salts the password; what is kept are keys made of that, from which it cannot be had back. The
answer comes when this node knows of it: whoever hears of a user logs in next, and most likely here.
"""

from collections.abc import Callable

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.metadata.image import MetadataImage
from ottla.protocol.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse


async def handle(
    services: Services | ControllerServices, session: Session, request: AlterUserScramCredentialsRequest, version: int
) -> AlterUserScramCredentialsResponse:
    response = await services.decide(request, session.client)
    refused = frozenset(each.user for each in response.results if each.error_code)
    await services.control_plane.seen_here(_arrived(request, refused))
    return response


def _arrived(request: AlterUserScramCredentialsRequest, refused: frozenset[str]) -> Callable[[MetadataImage], bool]:
    salts = {(each.mechanism, each.name): bytes(each.salt) for each in request.upsertions if each.name not in refused}
    gone = [(each.mechanism, each.name) for each in request.deletions if each.name not in refused]

    def has_arrived(image: MetadataImage) -> bool:
        known = image.scram
        return all(key in known and known[key].salt == salt for key, salt in salts.items()) and not any(
            key in known for key in gone
        )

    return has_arrived
