"""Envelope: a client's request that a broker has passed on to the active controller (KIP-590).

Version 0 only.
"""

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices
from ottla.model.errors import Errors
from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError
from ottla.protocol.messages import EnvelopeRequest, EnvelopeResponse
from ottla.runtime.active import NotController
from ottla.runtime.forwarding import opened, sealed_reply


async def handle(
    services: ControllerServices, session: Session, request: EnvelopeRequest, version: int
) -> EnvelopeResponse:
    try:
        header, inner = opened(request.request_data)
    except DecodeError:
        return EnvelopeResponse(error_code=Errors.INVALID_REQUEST)
    served = API[header.api_key].served
    if served is None or not served.forwarded:
        return EnvelopeResponse(error_code=Errors.INVALID_REQUEST)
    try:
        answer = await services.control_plane.submit_here(inner)
    except NotController:
        return EnvelopeResponse(error_code=Errors.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=sealed_reply(header, answer))
