"""BrokerHeartbeat: a broker lives, has read this far, and wants to be fenced, unfenced or let go (KIP-631).

Versions 0 to 2. 1 tells failed directories (KIP-858); 2 cordoned ones (KIP-1066).
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers import decided
from ottla.broker.services import ControllerServices
from ottla.protocol.codec import Message
from ottla.protocol.messages import BrokerHeartbeatRequest


async def handle(
    services: ControllerServices, session: Session, request: BrokerHeartbeatRequest, version: int
) -> Message:
    # Before the answer is waited for: the connection may break meanwhile, and whoever sees that must know whose it was.
    session.broker = (request.broker_id, request.broker_epoch)
    services.control_plane.broker_connected(request.broker_id, request.broker_epoch, session)
    return await decided.handle(services, session, request, version)
