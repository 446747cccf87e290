"""What a broker checks before a change of settings goes to the controller, whichever of two requests asks for it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.broker.front.session import Session
from ottla.broker.security.missing import missing
from ottla.broker.services import ControllerServices, Services
from ottla.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.model import properties
from ottla.model.errors import Errors
from ottla.model.permissions import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    Resource,
)

DELETE = 1


class ConfigResource(Protocol):
    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[Any]: ...


class Refused(NamedTuple):
    error: Errors
    message: str | None
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=ConfigResource)

_PERMISSIONS = {
    TOPIC_RESOURCE: (ALTER_TOPIC_CONFIGS, Errors.TOPIC_AUTHORIZATION_FAILED),
    GROUP_RESOURCE: (ALTER_GROUP_CONFIGS, Errors.GROUP_AUTHORIZATION_FAILED),
    BROKER_RESOURCE: (ALTER_CLUSTER_CONFIGS, Errors.CLUSTER_AUTHORIZATION_FAILED),
    BROKER_LOGGER_RESOURCE: (ALTER_CLUSTER_CONFIGS, Errors.CLUSTER_AUTHORIZATION_FAILED),
    CLIENT_METRICS_RESOURCE: (ALTER_CLUSTER_CONFIGS, Errors.CLUSTER_AUTHORIZATION_FAILED),
}


def screened(
    services: Services | ControllerServices, session: Session, resources: list[R], *, loggers: bool = False
) -> tuple[list[R], list[Refused]]:
    """The resources whose change may be decided, and a refusal for each of the others. `loggers` are let pass by one of
    the two requests only."""
    mentions = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    passed: list[R] = []
    refused: list[Refused] = []
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        if mentions[kind, name] > 1:
            refusal: tuple[Errors, str | None] | None = (Errors.INVALID_REQUEST, "a resource is named more than once")
        else:
            refusal = _refusal(services, session, kind, name, loggers=loggers) or _unready(services, resource)
        if refusal is None:
            passed.append(resource)
        else:
            refused.append(Refused(*refusal, kind, name))
    return passed, refused


def _refusal(
    services: Services | ControllerServices, session: Session, kind: int, name: str, *, loggers: bool
) -> tuple[Errors, str | None] | None:
    permission = _PERMISSIONS.get(kind)
    if permission is None or (kind == BROKER_LOGGER_RESOURCE and not loggers):
        return Errors.INVALID_REQUEST, f"{kind} is not a type of resource whose settings can be changed"
    own, is_broker = str(services.node_id), isinstance(services, Services)
    # A controller changes the settings of any broker, as of one that does not start with those it has.
    if (is_broker and kind == BROKER_RESOURCE and name not in ("", own)) or (
        kind == BROKER_LOGGER_RESOURCE and name != own
    ):
        return Errors.INVALID_REQUEST, f"this is node {own}: ask node {name!r} itself"
    needed, error = permission
    if kind == BROKER_LOGGER_RESOURCE and not is_broker:
        needed = CLUSTER_ACTION  # as Kafka's controllers
    about = CLUSTER_NAME if needed.resource is Resource.CLUSTER else name
    if not session.client.may(*needed, about):
        return error, missing(session.client.principal, (needed,), about)
    return None


def _unready(services: Services | ControllerServices, resource: ConfigResource) -> tuple[Errors, str] | None:
    """What a broker that runs cannot change into in one step; only it knows what its file says."""
    if resource.resource_type != BROKER_RESOURCE or isinstance(services, ControllerServices):
        return None
    changes = {
        config.name: config.value
        for config in resource.configs
        if config.value is not None and getattr(config, "config_operation", None) != DELETE
    }
    try:
        properties.check_running_broker(changes, services.configs.settings, per_broker=bool(resource.resource_name))
        if resource.resource_name:
            services.configs.judge(_then(services.configs.settings, resource, changes))
    except ValueError as problem:
        return Errors.INVALID_REQUEST, str(problem)
    return None


def _then(now: properties.Settings, resource: ConfigResource, changes: dict[str, str]) -> properties.Settings:
    """This broker's settings after the change."""
    gone = {config.name for config in resource.configs if config.name not in changes}
    own = {name: text for name, text in {**now.dynamic_broker, **changes}.items() if name not in gone}
    return now.with_dynamic(now.dynamic_default, own)
