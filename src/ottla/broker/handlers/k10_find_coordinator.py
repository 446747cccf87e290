"""FindCoordinator: the broker that keeps a group or a transactional id. Makes the internal topic on first use.

Versions 0 to 6. 1 finds transactions too (KIP-98); 3 is flexible; 4 asks for many keys (KIP-699); 5 knows
TRANSACTION_ABORTABLE (KIP-890); 6 finds share coordinators (KIP-932), of which there are none here.
"""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.coordination.coordinators import Coordinators
from ottla.broker.front.session import Session
from ottla.broker.security.missing import missing
from ottla.broker.services import Services
from ottla.metadata.image import Endpoint
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID, Permission
from ottla.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

GROUP = 0
TRANSACTION = 1
BATCHED = 4
NOT_SERVED = "this node keeps no share groups yet"


def handle(
    services: Services, session: Session, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    coordinators = _coordinators(services, request.key_type)
    keys = request.coordinator_keys if version >= BATCHED else [request.key]
    # Nothing is created for somebody who may not know of any of them.
    allowed = any(_allowed(session, request.key_type, key) for key in keys)
    if allowed and coordinators is not None and not coordinators.topic_exists:
        return _first_use(services, session, request, version, coordinators)
    return _answer(services, session, request, version, coordinators)


async def _first_use(
    services: Services,
    session: Session,
    request: FindCoordinatorRequest,
    version: int,
    coordinators: Coordinators[Any],
) -> FindCoordinatorResponse:
    await coordinators.ensure_topic()
    return _answer(services, session, request, version, coordinators)


def _coordinators(services: Services, key_type: int) -> Coordinators[Any] | None:
    if key_type == GROUP:
        return services.coordination.groups
    if key_type == TRANSACTION:
        return services.coordination.transactions.coordinators
    return None


def _answer(
    services: Services,
    session: Session,
    request: FindCoordinatorRequest,
    version: int,
    coordinators: Coordinators[Any] | None,
) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if version >= BATCHED else [request.key]
    found = [_coordinator(services, session, request.key_type, key, coordinators) for key in keys]
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


def _allowed(session: Session, key_type: int, key: str) -> bool:
    return session.client.may(*_needed(key_type), key)


def _needed(key_type: int) -> Permission:
    return DESCRIBE_TRANSACTIONAL_ID if key_type == TRANSACTION else DESCRIBE_GROUP


def _coordinator(
    services: Services, session: Session, key_type: int, key: str, coordinators: Coordinators[Any] | None
) -> FindCoordinatorResponse.Coordinator:
    if not _allowed(session, key_type, key):
        denied = (
            Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if key_type == TRANSACTION
            else Errors.GROUP_AUTHORIZATION_FAILED
        )
        return _error(key, denied, missing(session.client.principal, (_needed(key_type),), key))
    if coordinators is None:
        return _error(key, Errors.INVALID_REQUEST, NOT_SERVED)
    leader = coordinators.leader_for(key)
    endpoint = None if leader is None else _endpoint(services, session, leader)
    if leader is None or endpoint is None:
        return _error(key, Errors.COORDINATOR_NOT_AVAILABLE, None)
    return FindCoordinatorResponse.Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port)


def _endpoint(services: Services, session: Session, broker_id: int) -> Endpoint | None:
    broker = services.control_plane.image.brokers.get(broker_id)
    return broker.listener(session.client.listener) if broker is not None and broker.is_active else None


def _error(key: str, error: Errors, message: str | None) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message
    )
