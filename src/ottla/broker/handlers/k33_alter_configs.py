"""AlterConfigs: replaces all the settings of a resource. Clients that can use IncrementalAlterConfigs."""

from ottla.broker.config_changes import split_by_permission
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.protocol.messages import AlterConfigsRequest, AlterConfigsResponse

NEEDS = (Operation.ALTER_CONFIGS, Resource.CLUSTER)


async def handle(
    services: Services, session: Session, request: AlterConfigsRequest, version: int
) -> AlterConfigsResponse:
    request.resources, refused = split_by_permission(services, session, request.resources)
    response = await services.control_plane.submit(request)
    response.responses += [
        AlterConfigsResponse.AlterConfigsResourceResponse(error_code=error, resource_type=kind, resource_name=name)
        for error, kind, name in refused
    ]
    return response
