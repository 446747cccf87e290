"""CreateTopics."""

from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.model.errors import Errors
from ottla.protocol.messages import CreateTopicsRequest, CreateTopicsResponse

NEEDS = (Operation.CREATE, Resource.CLUSTER)


async def handle(
    services: Services, session: Session, request: CreateTopicsRequest, version: int
) -> CreateTopicsResponse:
    refused = [topic for topic in request.topics if not _allowed(services, session, topic.name)]
    request.topics = [topic for topic in request.topics if topic not in refused]
    response = await services.control_plane.submit(request)
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
