"""Requests about the quorum of the metadata log: its member on this node answers, or its leader where clients ask."""

from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.protocol import messages
from ottla.protocol.codec import Request, ResponseT_co

_NAMES_NODES = 2


async def handle(
    services: Services | ControllerServices, session: Session, request: Request[ResponseT_co], version: int
) -> ResponseT_co:
    if isinstance(services, ControllerServices):
        return await services.control_plane.ask_quorum(request, version)
    response = await services.decide(request, session.client)
    if isinstance(response, messages.DescribeQuorumResponse) and version < _NAMES_NODES:
        response.nodes = []
    return response
