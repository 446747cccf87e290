"""UnregisterBroker: a broker that will not come back leaves the cluster (KIP-631)."""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse

NEEDS = (Operation.ALTER, Resource.CLUSTER)


def handle(
    services: Services, session: Session, request: UnregisterBrokerRequest, version: int
) -> UnregisterBrokerResponse | Coroutine[Any, Any, Message]:
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return UnregisterBrokerResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    return services.control_plane.submit(request)
