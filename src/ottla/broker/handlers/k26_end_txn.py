"""EndTxn: commits or aborts. From v5 on the answer carries the epoch that the producer goes on with (KIP-890).

Versions 0 to 5. 2 knows PRODUCER_FENCED (KIP-588); 3 is flexible; 4 knows TRANSACTION_ABORTABLE and 5 is answered
with the next epoch (KIP-890).
"""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.coordination.transactions import answered
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.coordinator.transaction.machine import TV0, TV2, Producer
from ottla.coordinator.transaction.shard import EndReply
from ottla.model.errors import Errors
from ottla.model.permissions import WRITE_TRANSACTIONAL_ID
from ottla.protocol.messages import EndTxnRequest, EndTxnResponse

KNOWS_FENCED = 2
BUMPS_EPOCH = 5


def handle(
    services: Services, session: Session, request: EndTxnRequest, version: int
) -> EndTxnResponse | Coroutine[Any, Any, EndTxnResponse]:
    if not session.client.may(*WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return EndTxnResponse(error_code=Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    ended = services.coordination.transactions.end(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        TV2 if version >= BUMPS_EPOCH else TV0,
    )

    def response(reply: EndReply) -> EndTxnResponse:
        error = reply.error
        if error == Errors.PRODUCER_FENCED and version < KNOWS_FENCED:
            error = Errors.INVALID_PRODUCER_EPOCH
        if version < BUMPS_EPOCH:
            return EndTxnResponse(error_code=error)
        return EndTxnResponse(error_code=error, producer_id=reply.producer_id, producer_epoch=reply.epoch)

    return answered(ended, response)
