"""CreatePartitions: gives a topic more partitions; never fewer."""

from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse

NEEDS = (Operation.ALTER, Resource.TOPIC)


async def handle(
    services: Services, session: Session, request: CreatePartitionsRequest, version: int
) -> CreatePartitionsResponse:
    allows = services.authorizer.allows
    asked = request.topics
    request.topics = [t for t in asked if allows(session.principal, session.host, *NEEDS, t.name)]
    response = await services.control_plane.submit(request)
    response.results += [
        CreatePartitionsResponse.CreatePartitionsTopicResult(
            name=topic.name, error_code=Errors.TOPIC_AUTHORIZATION_FAILED
        )
        for topic in asked
        if topic not in request.topics
    ]
    return response
