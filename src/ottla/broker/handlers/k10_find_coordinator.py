"""FindCoordinator: the broker that keeps a group. On one node that is this one."""

from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.metadata.image import Endpoint
from ottla.model.errors import Errors
from ottla.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

NEEDS = (Operation.DESCRIBE, Resource.GROUP)

GROUP = 0
BATCHED = 4
NOT_SERVED = "this node keeps no transactions and no share groups yet"


def handle(
    services: Services, session: Session, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if version >= BATCHED else [request.key]
    found = [_coordinator(services, session, request.key_type, key) for key in keys]
    if version >= BATCHED:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(services: Services, session: Session, key_type: int, key: str) -> FindCoordinatorResponse.Coordinator:
    if key_type != GROUP:
        return _error(key, Errors.INVALID_REQUEST, NOT_SERVED)
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, key):
        return _error(key, Errors.GROUP_AUTHORIZATION_FAILED, None)
    endpoint = _endpoint(services, session)
    if endpoint is None:
        return _error(key, Errors.COORDINATOR_NOT_AVAILABLE, None)
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=services.broker_id, host=endpoint.host, port=endpoint.port
    )


def _endpoint(services: Services, session: Session) -> Endpoint | None:
    broker = services.control_plane.image.brokers.get(services.broker_id)
    return broker.listener(session.listener) if broker is not None else None


def _error(key: str, error: Errors, message: str | None) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message
    )
