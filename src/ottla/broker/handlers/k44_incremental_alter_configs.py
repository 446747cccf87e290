"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single settings (KIP-339)."""

from ottla.broker.config_changes import split_by_permission
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

NEEDS = (Operation.ALTER_CONFIGS, Resource.CLUSTER)


async def handle(
    services: Services, session: Session, request: IncrementalAlterConfigsRequest, version: int
) -> IncrementalAlterConfigsResponse:
    request.resources, refused = split_by_permission(services, session, request.resources)
    response = await services.control_plane.submit(request)
    response.responses += [
        IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
            error_code=error, resource_type=kind, resource_name=name
        )
        for error, kind, name in refused
    ]
    return response
