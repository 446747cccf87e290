"""AddOffsetsToTxn: a group's offsets join the transaction, as one more partition (TV1; TV2 does it by itself).

Versions 0 to 4. 2 knows PRODUCER_FENCED (KIP-588); 3 is flexible; 4 knows TRANSACTION_ABORTABLE (KIP-890).
"""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.coordination.transactions import answered
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.broker.settings.internal_topics import OFFSETS_TOPIC
from ottla.coordinator.transaction.machine import Producer
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.model.permissions import READ_GROUP, WRITE_TRANSACTIONAL_ID
from ottla.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

KNOWS_FENCED = 2


def handle(
    services: Services, session: Session, request: AddOffsetsToTxnRequest, version: int
) -> AddOffsetsToTxnResponse | Coroutine[Any, Any, AddOffsetsToTxnResponse]:
    may = session.client.may
    if not may(*WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not may(*READ_GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=Errors.GROUP_AUTHORIZATION_FAILED)
    if not services.coordination.groups.topic_exists:
        return _first_use(services, request, version)
    return _add(services, request, version)


async def _first_use(services: Services, request: AddOffsetsToTxnRequest, version: int) -> AddOffsetsToTxnResponse:
    if await services.coordination.groups.ensure_topic():
        return AddOffsetsToTxnResponse(error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    added = _add(services, request, version)
    return added if isinstance(added, AddOffsetsToTxnResponse) else await added


def _add(
    services: Services, request: AddOffsetsToTxnRequest, version: int
) -> AddOffsetsToTxnResponse | Coroutine[Any, Any, AddOffsetsToTxnResponse]:
    index = services.coordination.groups.partition_for(request.group_id)
    assert index is not None
    added = services.coordination.transactions.add_once_ended(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        (TopicPartition(OFFSETS_TOPIC, index),),
    )

    def response(error: Errors) -> AddOffsetsToTxnResponse:
        if error == Errors.PRODUCER_FENCED and version < KNOWS_FENCED:
            error = Errors.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=error)

    return answered(added, response)
