"""ConsumerGroupHeartbeat: the whole of the consumer protocol in one request (KIP-848).

Versions 0 and 1. 1 subscribes by a regular expression (KIP-848), and a member makes its own id (KIP-1082).
"""

from asyncio import Future

from ottla.broker.coordination.groups import ask, caller_of
from ottla.broker.front.session import Session
from ottla.broker.security.missing import missing
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_TOPIC, READ_GROUP
from ottla.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

GROUP_VERSION = "group.version"


def handle(
    services: Services, session: Session, request: ConsumerGroupHeartbeatRequest, version: int
) -> "ConsumerGroupHeartbeatResponse | Future[ConsumerGroupHeartbeatResponse]":
    if not enabled(services):
        return _error(Errors.UNSUPPORTED_VERSION)
    client = session.client
    if not client.may(*READ_GROUP, request.group_id):
        needed = missing(client.principal, (READ_GROUP,), request.group_id)
        return _error(Errors.GROUP_AUTHORIZATION_FAILED, needed)
    for topic in request.subscribed_topic_names or ():
        if not client.may(*DESCRIBE_TOPIC, topic):
            return _error(Errors.TOPIC_AUTHORIZATION_FAILED, missing(client.principal, (DESCRIBE_TOPIC,), topic))
    caller = caller_of(services, session, version)
    return ask(
        services.coordination.groups,
        request.group_id,
        lambda shard, now: shard.consumer_heartbeat(request, caller, now),
        _error,
    )


def enabled(services: Services) -> bool:
    """The cluster's level of the feature, and this node's own setting."""
    served = services.configs.settings.get_list("group.coordinator.rebalance.protocols")
    return services.control_plane.image.features.get(GROUP_VERSION, 0) > 0 and "consumer" in served


def _error(error: Errors, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)
