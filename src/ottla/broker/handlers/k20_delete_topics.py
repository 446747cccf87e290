"""DeleteTopics, by name or (from version 6) by id.

Versions 1 to 6. 3 knows TOPIC_DELETION_DISABLED (KIP-322); 4 is flexible; 5 has error messages and knows
THROTTLING_QUOTA_EXCEEDED (KIP-599); 6 takes ids (KIP-516).
"""

from typing import TypeAlias

from ottla.broker.front.client import Client
from ottla.broker.front.session import Session
from ottla.broker.security.missing import missing
from ottla.broker.services import ControllerServices, Services
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID, Uuid
from ottla.model.permissions import CLUSTER_NAME, DELETE_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC
from ottla.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse

DeleteTopicState: TypeAlias = DeleteTopicsRequest.DeleteTopicState
DeletableTopicResult: TypeAlias = DeleteTopicsResponse.DeletableTopicResult

BY_ID = 6
DELETION_ERROR_KNOWN = 3


async def handle(
    services: Services | ControllerServices, session: Session, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    asked = request.topics if version >= BY_ID else [DeleteTopicState(name=name) for name in request.topic_names]
    if not services.control_plane.settings.get_bool("delete.topic.enable"):
        # As Kafka: the error code is younger than the request.
        error = Errors.TOPIC_DELETION_DISABLED if version >= DELETION_ERROR_KNOWN else Errors.INVALID_REQUEST
        return DeleteTopicsResponse(
            responses=[DeletableTopicResult(name=t.name, topic_id=t.topic_id, error_code=error) for t in asked]
        )
    allowed: list[DeleteTopicState] = []
    refused: list[DeletableTopicResult] = []
    for topic in asked:
        refusal = _refusal(services.control_plane.image, session.client, topic)
        if refusal is None:
            allowed.append(topic)
        else:
            refused.append(refusal)
    command = DeleteTopicsRequest(timeout_ms=request.timeout_ms)
    if version >= BY_ID:
        command.topics = allowed
    else:
        command.topic_names = [topic.name for topic in allowed if topic.name is not None]
    response = await services.decide(command, session.client, client_id=session.client_id, version=version)
    response.responses += refused
    return response


def _refusal(image: MetadataImage, client: Client, topic: DeleteTopicState) -> DeletableTopicResult | None:
    name = topic.name
    if topic.topic_id != ZERO_UUID:
        known = image.topics_by_id.get(Uuid(topic.topic_id))
        if known is None or name is not None:
            return None  # the controller has the right words for both
        name = known.name
    if name is None or client.sees(*DELETE_CLUSTER, CLUSTER_NAME):
        return None
    sees = client.may(*DESCRIBE_TOPIC, name)
    if sees and (name not in image.topics or client.may(*DELETE_TOPIC, name)):
        return None  # what is not there is told to those who could see it
    # Who asked by id learns the name only if he may see the topic.
    told = name if name == topic.name or sees else None
    return DeletableTopicResult(
        name=told,
        topic_id=topic.topic_id,
        error_code=Errors.TOPIC_AUTHORIZATION_FAILED,
        error_message=None if told is None else missing(client.principal, (DELETE_TOPIC,), told),
    )
