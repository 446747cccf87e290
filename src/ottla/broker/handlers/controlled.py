"""Requests that the active controller decides as they are: what Kafka's tools send with --bootstrap-controller."""

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import ControllerServices
from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.runtime.refusals import refused

NEEDS = (Operation.CLUSTER_ACTION, Resource.CLUSTER)


async def handle(services: ControllerServices, session: Session, request: Message, version: int) -> Message:
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return refused(request, Errors.CLUSTER_AUTHORIZATION_FAILED)
    return await services.control_plane.answer_here(request)
