"""ListPartitionReassignments: which partitions are moving (KIP-455)."""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.protocol.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse

NEEDS = (Operation.DESCRIBE, Resource.CLUSTER)


def handle(
    services: Services, session: Session, request: ListPartitionReassignmentsRequest, version: int
) -> ListPartitionReassignmentsResponse | Coroutine[Any, Any, Message]:
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return ListPartitionReassignmentsResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    return services.control_plane.submit(request)
