"""CreateTopics."""

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.messages import CreateTopicsRequest, CreateTopicsResponse

NEEDS = (Operation.CREATE, Resource.CLUSTER)


async def handle(
    services: Services, session: Session, request: CreateTopicsRequest, version: int
) -> CreateTopicsResponse:
    refused = [topic for topic in request.topics if not _allowed(services, session, topic.name)]
    request.topics = [topic for topic in request.topics if topic not in refused]
    response = await services.control_plane.submit(request)
    response.topics = [_as_seen_by(services, session, topic) for topic in response.topics]
    response.topics += [
        CreateTopicsResponse.CreatableTopicResult(name=topic.name, error_code=Errors.TOPIC_AUTHORIZATION_FAILED)
        for topic in refused
    ]
    return response


def _allowed(services: Services, session: Session, name: str) -> bool:
    allows = services.authorizer.allows
    return allows(session.principal, session.host, *NEEDS, CLUSTER_NAME) or allows(
        session.principal, session.host, Operation.CREATE, Resource.TOPIC, name
    )


def _as_seen_by(
    services: Services, session: Session, created: CreateTopicsResponse.CreatableTopicResult
) -> CreateTopicsResponse.CreatableTopicResult:
    """Who may create a topic but not look at its settings is told no more than its id (KIP-525)."""
    looks = (Operation.DESCRIBE_CONFIGS, Resource.TOPIC, created.name)
    if created.error_code or services.authorizer.allows(session.principal, session.host, *looks):
        return created
    return CreateTopicsResponse.CreatableTopicResult(
        name=created.name,
        topic_id=created.topic_id,
        error_message=None,
        topic_config_error_code=Errors.TOPIC_AUTHORIZATION_FAILED,
    )
