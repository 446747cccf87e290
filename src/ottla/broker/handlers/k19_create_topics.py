"""CreateTopics: as asked, as the defaults say, or only tried.

Versions 2 to 7. 4 leaves partitions and replicas to the defaults (KIP-464); 5 is flexible and tells the settings of
what was made (KIP-525); 6 knows THROTTLING_QUOTA_EXCEEDED (KIP-599); 7 tells the topic's id (KIP-516).
"""

from ottla.broker.front.client import Client
from ottla.broker.front.session import Session
from ottla.broker.handlers.parting import parted
from ottla.broker.security.missing import missing
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.model.permissions import CLUSTER_NAME, CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS
from ottla.protocol.messages import CreateTopicsRequest, CreateTopicsResponse


async def handle(
    services: Services | ControllerServices, session: Session, request: CreateTopicsRequest, version: int
) -> CreateTopicsResponse:
    allowed, refused = parted(request.topics, lambda topic: _may_create(session.client, topic.name))
    request.topics = allowed
    response = await services.decide(request, session.client, client_id=session.client_id, version=version)
    response.topics = [_as_seen_by(session.client, topic) for topic in response.topics]
    response.topics += [
        CreateTopicsResponse.CreatableTopicResult(
            name=topic.name,
            error_code=Errors.TOPIC_AUTHORIZATION_FAILED,
            error_message=missing(session.client.principal, (CREATE_TOPIC,), topic.name),
        )
        for topic in refused
    ]
    return response


def _may_create(client: Client, name: str) -> bool:
    return client.sees(*CREATE_CLUSTER, CLUSTER_NAME) or client.may(*CREATE_TOPIC, name)


def _as_seen_by(
    client: Client, created: CreateTopicsResponse.CreatableTopicResult
) -> CreateTopicsResponse.CreatableTopicResult:
    """Who may create a topic but not look at its settings is told no more than its id (KIP-525)."""
    if created.error_code or client.sees(*DESCRIBE_TOPIC_CONFIGS, created.name):
        return created
    return CreateTopicsResponse.CreatableTopicResult(
        name=created.name,
        topic_id=created.topic_id,
        error_message=None,
        topic_config_error_code=Errors.TOPIC_AUTHORIZATION_FAILED,
    )
