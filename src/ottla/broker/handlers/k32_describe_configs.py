"""DescribeConfigs: every setting of a resource, where its value comes from, and what else it could have been.

Versions 1 to 4. 1 tells where a value comes from and what else it could be (KIP-226); 3 types and documentation
(KIP-569); 4 is flexible.
"""

from collections.abc import Iterable
from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.security.missing import missing
from ottla.broker.services import Services
from ottla.broker.settings.configs import Configs
from ottla.broker.settings.loggers import levels
from ottla.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.model.errors import Errors
from ottla.model.permissions import (
    CLUSTER_NAME,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
)
from ottla.model.properties import ConfigEntry, Source
from ottla.model.topic_names import why_invalid
from ottla.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse

Result: TypeAlias = DescribeConfigsResponse.DescribeConfigsResult
Asked: TypeAlias = DescribeConfigsRequest.DescribeConfigsResource


def handle(
    services: Services, session: Session, request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_describe(services, session, asked, request) for asked in request.resources]
    )


def _describe(services: Services, session: Session, asked: Asked, request: DescribeConfigsRequest) -> Result:
    result = Result(resource_type=asked.resource_type, resource_name=asked.resource_name)
    refusal = _refusal(services, session, asked)
    if refusal is not None:
        result.error_code, result.error_message = refusal
        return result
    wanted = frozenset(asked.configuration_keys) if asked.configuration_keys else None  # none named: all
    if asked.resource_type == BROKER_LOGGER_RESOURCE:
        result.configs = [_level(*each) for each in levels().items() if wanted is None or each[0] in wanted]
        return result
    entries = _entries(services.configs, asked)
    result.configs = [
        _described(entry, request.include_synonyms, request.include_documentation)
        for entry in entries
        if wanted is None or entry.name in wanted
    ]
    return result


def _entries(configs: Configs, asked: Asked) -> Iterable[ConfigEntry]:
    if asked.resource_type == TOPIC_RESOURCE:
        return configs.topic(asked.resource_name)
    if asked.resource_type == BROKER_RESOURCE:
        return configs.broker(asked.resource_name)
    if asked.resource_type == GROUP_RESOURCE:
        return configs.group(asked.resource_name)
    if asked.resource_type == CLIENT_METRICS_RESOURCE:
        return configs.client_metrics(asked.resource_name)
    return ()


def _refusal(services: Services, session: Session, asked: Asked) -> tuple[Errors, str | None] | None:
    kind, name = asked.resource_type, asked.resource_name
    client = session.client
    if kind == TOPIC_RESOURCE:
        if not client.may(*DESCRIBE_TOPIC_CONFIGS, name):
            return Errors.TOPIC_AUTHORIZATION_FAILED, missing(client.principal, (DESCRIBE_TOPIC_CONFIGS,), name)
        why = why_invalid(name)
        if why:
            return Errors.INVALID_TOPIC_EXCEPTION, why
        if name not in services.control_plane.image.topics:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, ""
        return None
    if kind == GROUP_RESOURCE:
        if not client.may(*DESCRIBE_GROUP_CONFIGS, name):
            return Errors.GROUP_AUTHORIZATION_FAILED, missing(client.principal, (DESCRIBE_GROUP_CONFIGS,), name)
        return (Errors.INVALID_REQUEST, "a group has a name") if not name else None
    if kind not in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE):
        return Errors.INVALID_REQUEST, f"{kind} is not a type of resource that has settings"
    if not client.may(*DESCRIBE_CLUSTER_CONFIGS, CLUSTER_NAME):
        needed = (DESCRIBE_CLUSTER_CONFIGS,)
        return Errors.CLUSTER_AUTHORIZATION_FAILED, missing(client.principal, needed, CLUSTER_NAME)
    if kind == CLIENT_METRICS_RESOURCE:
        return (Errors.INVALID_REQUEST, "a client metrics subscription has a name") if not name else None
    return _broker_refusal(services, kind, name)


def _broker_refusal(services: Services, kind: int, name: str) -> tuple[Errors, str | None] | None:
    if not name and kind == BROKER_RESOURCE:
        return None  # the cluster-wide defaults
    if name != str(services.broker_id):
        return Errors.INVALID_REQUEST, f"this is broker {services.broker_id}: ask broker {name!r} itself"
    return None


def _level(logger: str, level: str) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=logger, value=level, read_only=False, config_source=Source.DYNAMIC_BROKER_LOGGER_CONFIG
    )


def _described(
    entry: ConfigEntry, with_synonyms: bool, with_documentation: bool
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsResponse.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in entry.synonyms
        ]
        if with_synonyms
        else [],
        config_type=entry.type,
        documentation=entry.doc if with_documentation else None,
    )
