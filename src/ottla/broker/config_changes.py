"""Who may change the settings of which resource: shared by the two requests that change them."""

from typing import Protocol, TypeVar

from ottla.broker.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE
from ottla.model.errors import Errors


class ConfigResource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=ConfigResource)


def split_by_permission(
    services: Services, session: Session, resources: list[R]
) -> tuple[list[R], list[tuple[Errors, int, str]]]:
    """The resources this client may change, and a refusal for each of the others."""
    allowed: list[R] = []
    refused: list[tuple[Errors, int, str]] = []
    for resource in resources:
        kind, name, error = _asked(resource)
        if services.authorizer.allows(session.principal, session.host, Operation.ALTER_CONFIGS, kind, name):
            allowed.append(resource)
        else:
            refused.append((error, resource.resource_type, resource.resource_name))
    return allowed, refused


def _asked(resource: ConfigResource) -> tuple[Resource, str, Errors]:
    if resource.resource_type == TOPIC_RESOURCE:
        return Resource.TOPIC, resource.resource_name, Errors.TOPIC_AUTHORIZATION_FAILED
    if resource.resource_type == GROUP_RESOURCE:
        return Resource.GROUP, resource.resource_name, Errors.GROUP_AUTHORIZATION_FAILED
    return Resource.CLUSTER, CLUSTER_NAME, Errors.CLUSTER_AUTHORIZATION_FAILED
