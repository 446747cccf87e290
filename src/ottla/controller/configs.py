"""Dynamic configs of topics, brokers, groups and client-metrics subscriptions (KIP-226, KIP-339, KIP-848, KIP-714)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from ottla.controller.decision import Decision
from ottla.controller.refusal import Refusal
from ottla.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigKey,
    MetadataImage,
)
from ottla.model import properties, topic_names
from ottla.model.errors import Errors
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import MetadataRecord

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

MAX_VALUE_CHARS: Final = 0x7FFF
_MIN_ISR: Final = "min.insync.replicas"
_KNOWN_RESOURCES: Final = (TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)

Result = TypeVar("Result")

Changes = dict[str, str | None]
"""New values by config name; None takes the override away."""


def config_record(resource_type: int, resource_name: str, name: str, value: str | None) -> "messages.ConfigRecord":
    return messages.ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)


def incremental_alter_configs(
    image: MetadataImage, settings: Settings, request: "messages.IncrementalAlterConfigsRequest"
) -> "Decision[messages.IncrementalAlterConfigsResponse]":
    kind = messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    repeated = _repeated([(r.resource_type, r.resource_name) for r in request.resources])
    results = []
    records: list[MetadataRecord] = []
    for key, resource in {(r.resource_type, r.resource_name): r for r in request.resources}.items():
        changes: Changes | Refusal
        changes = repeated.get(key) or _incremental_changes(image, key, resource.configs)
        outcome = changes if isinstance(changes, Refusal) else _alter(image, settings, key, changes)
        results.append(_result(kind, key, outcome))
        records += () if isinstance(outcome, Refusal) else outcome
    reply = messages.IncrementalAlterConfigsResponse(responses=results)
    return Decision(reply, () if request.validate_only else _with_elr_cleared(image, records))


def alter_configs(
    image: MetadataImage, settings: Settings, request: "messages.AlterConfigsRequest"
) -> "Decision[messages.AlterConfigsResponse]":
    """The old call: what it does not name goes back to its default."""
    kind = messages.AlterConfigsResponse.AlterConfigsResourceResponse
    repeated = _repeated([(r.resource_type, r.resource_name) for r in request.resources])
    results = []
    records: list[MetadataRecord] = []
    for key, resource in {(r.resource_type, r.resource_name): r for r in request.resources}.items():
        outcome = repeated.get(key) or _replace_all(image, settings, key, resource.configs)
        results.append(_result(kind, key, outcome))
        records += () if isinstance(outcome, Refusal) else outcome
    reply = messages.AlterConfigsResponse(responses=results)
    return Decision(reply, () if request.validate_only else _with_elr_cleared(image, records))


def _repeated(keys: Sequence[ConfigKey]) -> dict[ConfigKey, Refusal]:
    """Resources named more than once: the request does not say which mention counts."""
    seen: dict[ConfigKey, int] = {}
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
    return {
        key: Refusal(Errors.INVALID_REQUEST, f"{_shown(key)} is named more than once.")
        for key, count in seen.items()
        if count > 1
    }


def _result(kind: Callable[..., Result], key: ConfigKey, outcome: object) -> Result:
    refusal = outcome if isinstance(outcome, Refusal) else Refusal(Errors.NONE, "")
    return kind(
        error_code=refusal.error,
        error_message=refusal.message or None,
        resource_type=key[0],
        resource_name=key[1],
    )


def _shown(key: ConfigKey) -> str:
    kinds = {
        TOPIC_RESOURCE: "Topic",
        BROKER_RESOURCE: "Broker",
        BROKER_LOGGER_RESOURCE: "Broker logger",
        CLIENT_METRICS_RESOURCE: "Client metrics",
        GROUP_RESOURCE: "Group",
    }
    return f"{kinds.get(key[0], f'Resource type {key[0]}')} '{key[1]}'"


def _incremental_changes(
    image: MetadataImage,
    key: ConfigKey,
    wanted: "Iterable[messages.IncrementalAlterConfigsRequest.AlterableConfig]",
) -> Changes | Refusal:
    current = image.configs.get(key, {})
    changes: Changes = {}
    for config in wanted:
        operation, name, value = config.config_operation, config.name, config.value
        if name in changes:
            return Refusal(Errors.INVALID_REQUEST, f"{name} is changed twice in one request.")
        if operation not in (SET, DELETE, APPEND, SUBTRACT):
            return Refusal(Errors.INVALID_REQUEST, f"Operation {operation} on {name} is unknown.")
        if operation == DELETE:
            changes[name] = None
            continue
        if value is None:
            return Refusal(Errors.INVALID_REQUEST, f"{name} needs a value.")
        if operation == SET:
            changes[name] = value
            continue
        if not _is_list(key[0], name):
            return Refusal(
                Errors.INVALID_CONFIG, f"{name} is not a list: nothing can be appended to it or subtracted from it."
            )
        changes[name] = _edited(current.get(name, _default_text(key[0], name)), value, remove=operation == SUBTRACT)
    return changes


def _edited(text: str | None, values: str, *, remove: bool) -> str:
    items = [item for item in (text or "").split(",") if item]
    if not remove:
        new = dict.fromkeys(values.split(","))
        for item in items:
            new.pop(item, None)
        return ",".join((*items, *new))
    less = Counter(values.split(","))  # each takes away one, the first
    kept = []
    for item in items:
        if less[item] > 0:
            less[item] -= 1
        else:
            kept.append(item)
    return ",".join(kept)


def _replace_all(
    image: MetadataImage,
    settings: Settings,
    key: ConfigKey,
    wanted: "Iterable[messages.AlterConfigsRequest.AlterableConfig]",
) -> list[MetadataRecord] | Refusal:
    explicit: Changes = {}
    for config in wanted:
        if config.name in explicit:
            return Refusal(Errors.INVALID_REQUEST, f"{config.name} is changed twice in one request.")
        if config.value is None:
            return Refusal(Errors.INVALID_REQUEST, f"{config.name} needs a value.")
        explicit[config.name] = config.value
    implicit: Changes = {name: None for name in image.configs.get(key, {}) if name not in explicit}
    return _alter(image, settings, key, {**explicit, **implicit})


def _alter(
    image: MetadataImage, settings: Settings, key: ConfigKey, changes: Changes
) -> list[MetadataRecord] | Refusal:
    current = image.configs.get(key, {})
    after = {name: value for name, value in {**current, **changes}.items() if value is not None}
    refusal = (
        _resource_refusal(image, settings, key)
        or _values_refusal(settings, key, current, after)
        or _change_refusal(image, key, changes)
    )
    if refusal is not None:
        return refusal
    # KAFKA-14136: a broker re-reads key stores and the like when it sees the record, even of an equal value.
    return [
        config_record(*key, name, value)
        for name, value in changes.items()
        if value != current.get(name) or key[0] == BROKER_RESOURCE
    ]


def _resource_refusal(image: MetadataImage, settings: Settings, key: ConfigKey) -> Refusal | None:
    kind, name = key
    if kind not in _KNOWN_RESOURCES:
        if kind == BROKER_LOGGER_RESOURCE:
            return Refusal(Errors.INVALID_REQUEST, "Log levels are not kept in the metadata log.")
        return Refusal(Errors.UNSUPPORTED_VERSION, f"Resource type {kind} is unknown.")
    if kind == TOPIC_RESOURCE:
        problem = topic_names.why_invalid(name)
        if problem is not None:
            return Refusal(Errors.INVALID_TOPIC_EXCEPTION, f"Invalid topic name: {problem}.")
        if name not in image.topics:
            return Refusal(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
    elif kind == BROKER_RESOURCE:
        return _broker_refusal(image, settings, name)
    elif not name:
        return Refusal(Errors.INVALID_REQUEST, "Groups and client-metrics subscriptions have no defaults: name one.")
    return None


def _broker_refusal(image: MetadataImage, settings: Settings, name: str) -> Refusal | None:
    if not name:
        return None
    if not name.isascii() or not name.isdecimal():
        return Refusal(Errors.INVALID_REQUEST, f"'{name}' is not a broker id.")
    node = int(name)
    if node not in image.brokers and node not in image.controllers and node != settings.node_id:
        return Refusal(Errors.BROKER_ID_NOT_REGISTERED, f"No node has the id {node}.")
    return None


def _change_refusal(image: MetadataImage, key: ConfigKey, changes: Changes) -> Refusal | None:
    for name, value in changes.items():
        if value is not None and len(value) > MAX_VALUE_CHARS:
            return Refusal(Errors.INVALID_CONFIG, f"The value of {name} is longer than {MAX_VALUE_CHARS} characters.")
        if key[0] == CLIENT_METRICS_RESOURCE and value is not None:
            return Refusal(Errors.INVALID_REQUEST, "Metrics of clients (KIP-714) are not collected by this version.")
        if name == _MIN_ISR and key[0] == BROKER_RESOURCE and image.elr_enabled:
            if key[1]:
                return Refusal(
                    Errors.INVALID_CONFIG,
                    f"With eligible leader replicas on, {_MIN_ISR} is set for topics or the cluster.",
                )
            if value is None:
                return Refusal(
                    Errors.INVALID_CONFIG,
                    f"With eligible leader replicas on, the cluster's {_MIN_ISR} cannot be removed.",
                )
    return None


def _values_refusal(
    settings: Settings, key: ConfigKey, before: Mapping[str, str], after: Mapping[str, str]
) -> Refusal | None:
    kind, name = key
    try:
        if kind == TOPIC_RESOURCE:
            properties.check_topic_config(after, settings, before)
        elif kind == GROUP_RESOURCE:
            properties.check_group_config(after, settings)
        elif kind == BROKER_RESOURCE:
            properties.check_broker_config(after, settings, per_broker=bool(name))
        else:
            properties.check_client_metrics_config(after)
    except ValueError as problem:
        return Refusal(_code(kind, problem), str(problem))
    return None


def _code(kind: int, problem: ValueError) -> Errors:
    """As in Kafka, where a broker says INVALID_REQUEST for all that it cannot take, and ClientMetricsConfigs for names
    and intervals only."""
    if kind == BROKER_RESOURCE:
        return Errors.INVALID_REQUEST
    asked_wrongly = isinstance(problem, properties.UnknownName | properties.OutOfBounds)
    return Errors.INVALID_REQUEST if kind == CLIENT_METRICS_RESOURCE and asked_wrongly else Errors.INVALID_CONFIG


def why_invalid_topic_configs(values: Mapping[str, str], settings: Settings) -> Refusal | None:
    return _values_refusal(settings, (TOPIC_RESOURCE, ""), {}, values)


def _table(resource_type: int) -> "Mapping[str, properties.Property]":
    if resource_type == TOPIC_RESOURCE:
        return properties.TOPIC
    if resource_type == GROUP_RESOURCE:
        return properties.GROUP
    return properties.CLIENT_METRICS if resource_type == CLIENT_METRICS_RESOURCE else properties.BROKER


def _is_list(resource_type: int, name: str) -> bool:
    declared = _table(resource_type).get(name)
    return declared is not None and declared.type is properties.Type.LIST


def _default_text(resource_type: int, name: str) -> str | None:
    declared = _table(resource_type).get(name)
    return None if declared is None else declared.default_text


def _with_elr_cleared(image: MetadataImage, records: Sequence[MetadataRecord]) -> tuple[MetadataRecord, ...]:
    """KIP-966: an ELR was computed for the old min.insync.replicas and means nothing under a new one."""
    if not image.elr_enabled:
        return tuple(records)
    cleared: list[MetadataRecord] = []
    for record in records:
        if isinstance(record, messages.ConfigRecord) and record.name == _MIN_ISR:
            topic = record.resource_name if record.resource_type == TOPIC_RESOURCE else ""
            cleared.append(messages.ClearElrRecord(topic_name=topic))
    return (*records, *cleared)


def described_topic_configs(
    image: MetadataImage, settings: Settings, overrides: Mapping[str, str]
) -> "list[messages.CreateTopicsResponse.CreatableTopicConfigs]":
    """All configs of a new topic as its creator will see them, for CreateTopics v5+."""
    entries = properties.effective_topic_config(
        overrides, settings, image.broker_configs(settings.node_id), image.cluster_configs
    )
    kind = messages.CreateTopicsResponse.CreatableTopicConfigs
    return [
        kind(
            name=entry.name,
            value=None if entry.sensitive else entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in entries
    ]
