"""ListConfigResources: the resources that have settings of their own (KIP-1142).

Versions 0 and 1. 0 lists subscriptions to client metrics only (KIP-714); 1 all resources, by type (KIP-1142).
"""

from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.model.errors import Errors
from ottla.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse

ConfigResource: TypeAlias = ListConfigResourcesResponse.ConfigResource

_LISTED = (TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)


def handle(
    services: Services, session: Session, request: ListConfigResourcesRequest, version: int
) -> ListConfigResourcesResponse:
    # Version 0 knew client metrics only.
    types = [CLIENT_METRICS_RESOURCE] if version == 0 else request.resource_types or list(_LISTED)
    if any(kind not in _LISTED for kind in types):
        return ListConfigResourcesResponse(error_code=Errors.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in _LISTED
            if kind in types
            for name in _names(services, kind)
        ]
    )


def _names(services: Services, kind: int) -> list[str]:
    image = services.control_plane.image
    if kind == TOPIC_RESOURCE:
        return list(image.topics)
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return [str(broker) for broker in image.brokers]
    return [name for type_, name in image.configs if type_ == kind]
