"""Requests about the quorum of the metadata log: its member on this node answers, or its leader where clients ask."""

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.codec import Message
from ottla.protocol.messages import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest
from ottla.runtime.refusals import refused

_NAMES_NODES = 2


async def answer(
    services: Services | ControllerServices,
    session: Session,
    request: Message,
    version: int,
    needs: tuple[Operation, Resource],
) -> Message:
    if not services.authorizer.allows(session.principal, session.host, *needs, CLUSTER_NAME):
        return refused(request, Errors.CLUSTER_AUTHORIZATION_FAILED)
    if isinstance(services, ControllerServices):
        return await services.control_plane.ask_quorum(request, version)
    assert isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest | DescribeQuorumRequest)
    response: Message = await services.control_plane.submit(request)
    if isinstance(response, messages.DescribeQuorumResponse) and version < _NAMES_NODES:
        response.nodes = []
    return response
