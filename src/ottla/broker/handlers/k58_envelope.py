"""Envelope: a client's request that a broker has passed on to the active controller (KIP-590)."""

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import ControllerServices
from ottla.controller.machine import Controller
from ottla.model.errors import Errors
from ottla.protocol.codec import DecodeError
from ottla.protocol.messages import EnvelopeRequest, EnvelopeResponse
from ottla.runtime.active import NotController
from ottla.runtime.forwarding import opened, sealed_reply

NEEDS = (Operation.CLUSTER_ACTION, Resource.CLUSTER)


async def handle(
    services: ControllerServices, session: Session, request: EnvelopeRequest, version: int
) -> EnvelopeResponse:
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return EnvelopeResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    try:
        header, inner = opened(request.request_data)
    except DecodeError:
        return EnvelopeResponse(error_code=Errors.INVALID_REQUEST)
    if not Controller.takes(inner):
        return EnvelopeResponse(error_code=Errors.INVALID_REQUEST)
    try:
        answer = await services.control_plane.submit_here(inner)
    except NotController:
        return EnvelopeResponse(error_code=Errors.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=sealed_reply(header, answer))
