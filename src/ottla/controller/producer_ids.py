"""Blocks of producer ids: a thousand at a time, each handed out once for the life of the cluster (KIP-730)."""

from typing import Final

from ottla.controller.brokers import stale_epoch
from ottla.controller.decision import Decision
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.protocol import messages

BLOCK_SIZE: Final = 1000
_MAX_INT64: Final = (1 << 63) - 1


def allocate(
    image: MetadataImage, request: "messages.AllocateProducerIdsRequest"
) -> "Decision[messages.AllocateProducerIdsResponse]":
    if stale_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(messages.AllocateProducerIdsResponse(error_code=Errors.STALE_BROKER_EPOCH))
    first = max(image.next_producer_id, 0)
    if first > _MAX_INT64 - BLOCK_SIZE:
        return Decision(messages.AllocateProducerIdsResponse(error_code=Errors.UNKNOWN_SERVER_ERROR))
    record = messages.ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    reply = messages.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision(reply, (record,))
