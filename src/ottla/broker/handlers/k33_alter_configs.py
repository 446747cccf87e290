"""AlterConfigs: replaces all the settings of a resource. Clients that can use IncrementalAlterConfigs.

Versions 0 to 2. All say the same; 2 is flexible.
"""

from ottla.broker.front.session import Session
from ottla.broker.handlers.config_changes import screened
from ottla.broker.services import ControllerServices, Services
from ottla.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


async def handle(
    services: Services | ControllerServices, session: Session, request: AlterConfigsRequest, version: int
) -> AlterConfigsResponse:
    request.resources, refused = screened(services, session, request.resources)
    response = await services.decide(request, session.client)
    response.responses += [
        AlterConfigsResponse.AlterConfigsResourceResponse(
            error_code=one.error,
            error_message=one.message,
            resource_type=one.resource_type,
            resource_name=one.resource_name,
        )
        for one in refused
    ]
    return response
