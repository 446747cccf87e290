"""UpdateFeatures: finalizes feature levels (KIP-584)."""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

NEEDS = (Operation.ALTER, Resource.CLUSTER)


def handle(
    services: Services, session: Session, request: UpdateFeaturesRequest, version: int
) -> UpdateFeaturesResponse | Coroutine[Any, Any, Message]:
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return UpdateFeaturesResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    return services.control_plane.submit(request)
