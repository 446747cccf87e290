"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single settings (KIP-339).

Also the levels of this broker's loggers (KIP-412), which are no business of the controller.

Versions 0 and 1. Both say the same; 1 is flexible.
"""

from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.handlers.config_changes import screened
from ottla.broker.services import ControllerServices, Services
from ottla.broker.settings import loggers
from ottla.metadata.image import BROKER_LOGGER_RESOURCE
from ottla.model.errors import Errors
from ottla.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Asked: TypeAlias = IncrementalAlterConfigsRequest.AlterConfigsResource
Result: TypeAlias = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(
    services: Services | ControllerServices, session: Session, request: IncrementalAlterConfigsRequest, version: int
) -> IncrementalAlterConfigsResponse:
    passed, refused = screened(services, session, request.resources, loggers=True)
    levels = [asked for asked in passed if asked.resource_type == BROKER_LOGGER_RESOURCE]
    results = [_change_levels(asked, validate_only=request.validate_only) for asked in levels]
    if levels:
        services.authorizer.forget()  # the audit log may now want to hear of what is allowed
    results += [_result(one.resource_type, one.resource_name, one.error, one.message) for one in refused]
    request.resources = [asked for asked in passed if asked.resource_type != BROKER_LOGGER_RESOURCE]
    if levels and not request.resources:
        return IncrementalAlterConfigsResponse(responses=results)
    response = await services.decide(request, session.client)
    response.responses += results
    return response


def _change_levels(asked: Asked, *, validate_only: bool) -> Result:
    refusal = loggers.why_not(asked.configs)
    if refusal is None and not validate_only:
        loggers.apply(asked.configs)
    return _result(asked.resource_type, asked.resource_name, *(refusal or (Errors.NONE, None)))


def _result(kind: int, name: str, error: Errors, message: str | None) -> Result:
    return Result(error_code=error, error_message=message, resource_type=kind, resource_name=name)
