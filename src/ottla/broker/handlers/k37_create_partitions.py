"""CreatePartitions: gives a topic more partitions; never fewer.

Versions 0 to 3. 2 is flexible; 3 knows THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers.parting import parted
from ottla.broker.security.missing import missing
from ottla.broker.services import ControllerServices, Services
from ottla.model.errors import Errors
from ottla.model.permissions import ALTER_TOPIC
from ottla.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse


async def handle(
    services: Services | ControllerServices, session: Session, request: CreatePartitionsRequest, version: int
) -> CreatePartitionsResponse:
    allowed, refused = parted(request.topics, lambda topic: session.client.may(*ALTER_TOPIC, topic.name))
    request.topics = allowed
    response = await services.decide(request, session.client, client_id=session.client_id, version=version)
    response.results += [
        CreatePartitionsResponse.CreatePartitionsTopicResult(
            name=topic.name,
            error_code=Errors.TOPIC_AUTHORIZATION_FAILED,
            error_message=missing(session.client.principal, (ALTER_TOPIC,), topic.name),
        )
        for topic in refused
    ]
    return response
