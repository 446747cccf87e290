"""InitProducerId: an id and an epoch, for an idempotent producer or for a transactional one (KIP-98, KIP-360).

Versions 0 to 5. 2 is flexible; 3 brings the id and epoch to go on from (KIP-360); 4 knows PRODUCER_FENCED (KIP-588);
5 TRANSACTION_ABORTABLE (KIP-890). 6, for two-phase commit (KIP-939), is not stable in 4.3 and not served.
"""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.front.client import Client
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import (
    CLUSTER_NAME,
    IDEMPOTENT_WRITE,
    TWO_PHASE_COMMIT,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from ottla.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

KNOWS_FENCED = 4


def handle(
    services: Services, session: Session, request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    name = request.transactional_id
    if name is not None and not _may_begin(session.client, request):
        return _error(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if name is None and not _may_be_idempotent(session.client):
        return _error(Errors.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _error(Errors.INVALID_REQUEST)
    if name == "":
        return _error(Errors.INVALID_REQUEST)
    if name is not None:
        return _transactional(services, request, name, version)
    producer_id = services.coordination.producer_ids.take()
    if producer_id is None:
        return _fetch_block(services)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _transactional(
    services: Services, request: InitProducerIdRequest, name: str, version: int
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    # Idempotent producers need nothing of this.
    from ottla.broker.coordination.transactions import answered  # noqa: PLC0415
    from ottla.coordinator.transaction.machine import Producer  # noqa: PLC0415
    from ottla.coordinator.transaction.shard import InitProducerId, InitReply  # noqa: PLC0415

    expected = Producer(request.producer_id, request.producer_epoch) if request.producer_id != -1 else None
    command = InitProducerId(
        name, request.transaction_timeout_ms, expected, request.enable2_pc, request.keep_prepared_txn
    )

    def response(reply: InitReply) -> InitProducerIdResponse:
        error = reply.error
        if error == Errors.PRODUCER_FENCED and version < KNOWS_FENCED:
            error = Errors.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=error, producer_id=reply.producer_id, producer_epoch=reply.epoch)

    return answered(services.coordination.transactions.init_producer_id(command), response)


async def _fetch_block(services: Services) -> InitProducerIdResponse:
    producer_id = await services.coordination.producer_ids.next()
    if producer_id is None:
        return _error(Errors.COORDINATOR_LOAD_IN_PROGRESS)  # of what Kafka could say the one that no client gives up on
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _may_begin(client: Client, request: InitProducerIdRequest) -> bool:
    name = request.transactional_id or ""
    return client.may(*WRITE_TRANSACTIONAL_ID, name) and (not request.enable2_pc or client.may(*TWO_PHASE_COMMIT, name))


def _may_be_idempotent(client: Client) -> bool:
    # Whoever may write to some topic may also be idempotent (KIP-679).
    return (
        client.sees(*IDEMPOTENT_WRITE, CLUSTER_NAME)
        or client.may_somewhere(*WRITE_TOPIC)
        or client.may(*IDEMPOTENT_WRITE, CLUSTER_NAME)  # which writes the refusal down
    )


def _error(error: Errors) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
