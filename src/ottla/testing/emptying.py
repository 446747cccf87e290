"""Brings a running cluster back to what it was before a test: no topics, and the settings it began with."""

import asyncio
from collections.abc import Iterable
from typing import Final

from ottla.metadata.image import TOPIC_RESOURCE, ConfigKey
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.node.node import Node
from ottla.protocol.messages import DeleteTopicsRequest, IncrementalAlterConfigsRequest

Configs = dict[ConfigKey, dict[str, str]]

_SET, _DELETE = 0, 1
"""Of IncrementalAlterConfigs."""
_RETRY_SECONDS: Final = 0.02


async def delete_topics(node: Node, doomed: Iterable[Uuid]) -> None:
    """Again while there is no controller: it may have been the one that a test has killed."""
    kind = DeleteTopicsRequest
    while topics := [kind.DeleteTopicState(topic_id=each) for each in doomed]:
        reply = await node.control_plane.submit(kind(topics=topics))
        gone = (Errors.NONE, Errors.UNKNOWN_TOPIC_ID)
        doomed = [Uuid(each.topic_id) for each in reply.responses if each.error_code not in gone]
        if doomed:
            await asyncio.sleep(_RETRY_SECONDS)


def topic_ids(node: Node) -> list[Uuid]:
    return [topic.id for topic in node.control_plane.image.topics.values()]


def configs(node: Node) -> Configs:
    """Everything that can be configured besides topics, which are deleted as a whole."""
    return {key: dict(values) for key, values in node.control_plane.image.configs.items() if key[0] != TOPIC_RESOURCE}


async def restore_configs(node: Node, first: Configs) -> None:
    while resources := _changes(configs(node), first):
        reply = await node.control_plane.submit(IncrementalAlterConfigsRequest(resources=resources))
        if not any(Errors(each.error_code).retriable for each in reply.responses):
            return
        await asyncio.sleep(_RETRY_SECONDS)


def _changes(now: Configs, first: Configs) -> list[IncrementalAlterConfigsRequest.AlterConfigsResource]:
    kind = IncrementalAlterConfigsRequest
    resources = []
    for key in dict.fromkeys((*now, *first)):
        wanted, found = first.get(key, {}), now.get(key, {})
        changes = [kind.AlterableConfig(name=n, config_operation=_DELETE) for n in found if n not in wanted]
        changes += [
            kind.AlterableConfig(name=n, config_operation=_SET, value=v) for n, v in wanted.items() if found.get(n) != v
        ]
        if changes:
            resources.append(kind.AlterConfigsResource(resource_type=key[0], resource_name=key[1], configs=changes))
    return resources
