"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single settings (KIP-339).

Also the levels of this broker's loggers (KIP-412), which are no business of the controller.
"""

from typing import TypeAlias

from ottla.broker import loggers
from ottla.broker.config_changes import screened
from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.metadata.image import BROKER_LOGGER_RESOURCE
from ottla.model.errors import Errors
from ottla.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

NEEDS = (Operation.ALTER_CONFIGS, Resource.CLUSTER)

Asked: TypeAlias = IncrementalAlterConfigsRequest.AlterConfigsResource
Result: TypeAlias = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(
    services: Services, session: Session, request: IncrementalAlterConfigsRequest, version: int
) -> IncrementalAlterConfigsResponse:
    levels = [asked for asked in request.resources if asked.resource_type == BROKER_LOGGER_RESOURCE]
    settings = [asked for asked in request.resources if asked.resource_type != BROKER_LOGGER_RESOURCE]
    results = [_change_levels(services, session, asked, levels, request.validate_only) for asked in levels]
    request.resources, refused = screened(services, session, settings)
    response = IncrementalAlterConfigsResponse(responses=[])
    if request.resources or not levels:
        response = await services.control_plane.submit(request)
    results += [_result(one.resource_type, one.resource_name, one.error, one.message) for one in refused]
    response.responses += results
    return response


def _change_levels(
    services: Services, session: Session, asked: Asked, all_asked: list[Asked], validate_only: bool
) -> Result:
    refusal = _refusal(services, session, asked, all_asked) or loggers.why_not(asked.configs)
    if refusal is None and not validate_only:
        loggers.apply(asked.configs)
    return _result(asked.resource_type, asked.resource_name, *(refusal or (Errors.NONE, None)))


def _refusal(
    services: Services, session: Session, asked: Asked, all_asked: list[Asked]
) -> tuple[Errors, str | None] | None:
    name = asked.resource_name
    if sum(other.resource_name == name for other in all_asked) > 1:
        return Errors.INVALID_REQUEST, "a resource is named more than once"
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, CLUSTER_NAME):
        return Errors.CLUSTER_AUTHORIZATION_FAILED, None
    if name != str(services.broker_id):
        return Errors.INVALID_REQUEST, f"this is broker {services.broker_id}: ask broker {name!r} itself"
    return None


def _result(kind: int, name: str, error: Errors, message: str | None) -> Result:
    return Result(error_code=error, error_message=message, resource_type=kind, resource_name=name)
