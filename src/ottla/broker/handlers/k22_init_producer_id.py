"""InitProducerId for idempotent producers: a fresh id, epoch 0. Transactional ids come with their coordinator."""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.model.errors import Errors
from ottla.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

NEEDS = (Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)


def handle(
    services: Services, session: Session, request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    if request.transactional_id is not None:
        return _error(Errors.INVALID_REQUEST)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _error(Errors.INVALID_REQUEST)
    if not _allowed(services, session):
        return _error(Errors.CLUSTER_AUTHORIZATION_FAILED)
    producer_id = services.producer_ids.take()
    if producer_id is None:
        return _fetch_block(services)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _fetch_block(services: Services) -> InitProducerIdResponse:
    producer_id = await services.producer_ids.next()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _allowed(services: Services, session: Session) -> bool:
    # Whoever may write to some topic may also be idempotent (KIP-679).
    return services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME) or any(
        services.authorizer.allows(session.principal, session.host, Operation.WRITE, Resource.TOPIC, name)
        for name in services.control_plane.image.topics
    )


def _error(error: Errors) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
