"""DeleteTopics, by name or (from version 6) by id."""

from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID, Uuid
from ottla.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse

NEEDS = (Operation.DELETE, Resource.TOPIC)

DeleteTopicState: TypeAlias = DeleteTopicsRequest.DeleteTopicState
DeletableTopicResult: TypeAlias = DeleteTopicsResponse.DeletableTopicResult

BY_ID = 6
DELETION_ERROR_KNOWN = 3


async def handle(
    services: Services, session: Session, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    asked = request.topics if version >= BY_ID else [DeleteTopicState(name=name) for name in request.topic_names]
    if not services.configs.settings.get_bool("delete.topic.enable"):
        # As Kafka: the error code is younger than the request.
        error = Errors.TOPIC_DELETION_DISABLED if version >= DELETION_ERROR_KNOWN else Errors.INVALID_REQUEST
        return DeleteTopicsResponse(
            responses=[DeletableTopicResult(name=t.name, topic_id=t.topic_id, error_code=error) for t in asked]
        )
    allowed: list[DeleteTopicState] = []
    refused: list[DeletableTopicResult] = []
    for topic in asked:
        refusal = _refusal(services, session, topic)
        if refusal is None:
            allowed.append(topic)
        else:
            refused.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=refusal))
    command = DeleteTopicsRequest(topics=allowed, timeout_ms=request.timeout_ms)
    response = await services.control_plane.submit(command)
    response.responses += refused
    return response


def _refusal(services: Services, session: Session, topic: DeleteTopicState) -> Errors | None:
    name = topic.name
    if topic.topic_id != ZERO_UUID:
        known = services.control_plane.image.topics_by_id.get(Uuid(topic.topic_id))
        if known is None or name is not None:
            return None  # the controller has the right words for both
        name = known.name
    if name is not None and not services.authorizer.allows(session.principal, session.host, *NEEDS, name):
        return Errors.TOPIC_AUTHORIZATION_FAILED
    return None
