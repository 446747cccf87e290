"""ElectLeaders: the preferred replica, or any live one, is to lead (KIP-460)."""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.protocol.messages import ElectLeadersRequest, ElectLeadersResponse

NEEDS = (Operation.ALTER, Resource.CLUSTER)


def handle(
    services: Services, session: Session, request: ElectLeadersRequest, version: int
) -> ElectLeadersResponse | Coroutine[Any, Any, Message]:
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return ElectLeadersResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    return services.control_plane.submit(request)
