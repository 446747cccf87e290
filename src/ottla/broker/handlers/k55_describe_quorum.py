"""DescribeQuorum: who votes on the metadata log, and how far each has come."""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.model.errors import Errors
from ottla.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse

NEEDS = (Operation.DESCRIBE, Resource.CLUSTER)

NAMES_NODES = 2


def handle(
    services: Services, session: Session, request: DescribeQuorumRequest, version: int
) -> DescribeQuorumResponse | Coroutine[Any, Any, DescribeQuorumResponse]:
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return DescribeQuorumResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    return _describe(services, request, version)


async def _describe(services: Services, request: DescribeQuorumRequest, version: int) -> DescribeQuorumResponse:
    response = await services.control_plane.submit(request)
    if version < NAMES_NODES:
        response.nodes = []
    return response
