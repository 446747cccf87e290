"""Brings a running cluster back to what it was before a test: no topics, and the settings, quotas and users it began
with."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.metadata.image import TOPIC_RESOURCE, ConfigKey, MetadataImage, QuotaEntity
from ottla.metadata.tokens import token_hmac
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.node.node import Node
from ottla.protocol.codec import Request
from ottla.protocol.messages import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    DeleteTopicsRequest,
    ExpireDelegationTokenRequest,
    IncrementalAlterConfigsRequest,
)
from ottla.runtime.forwarding import Sender

Configs = dict[ConfigKey, dict[str, str]]

_SET, _DELETE = 0, 1
"""Of IncrementalAlterConfigs."""
_RETRY_SECONDS: Final = 0.02
_ROUNDS: Final = 200
"""Who looks afterwards tells what is left."""


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


# ---- quotas, users, delegation tokens


def without_security_of_a_test(image: MetadataImage, first: MetadataImage) -> bool:
    """Whether quotas, users and tokens are as they were."""
    return not [*_quota_entries(image, first), *_users(image, first), *_tokens(image, first)]


async def restore_security(node: Node, first: MetadataImage) -> None:
    for _ in range(_ROUNDS):
        image = node.control_plane.image
        if without_security_of_a_test(image, first):
            return
        for request, asking in _security_changes(node, image, first):
            await node.control_plane.submit(request, on_behalf_of=asking)
        await asyncio.sleep(_RETRY_SECONDS)  # until this node knows of it


def _security_changes(
    node: Node, image: MetadataImage, first: MetadataImage
) -> list[tuple[Request[Any], Sender | None]]:
    changes: list[tuple[Request[Any], Sender | None]] = []
    if quotas := _quota_entries(image, first):
        changes.append((AlterClientQuotasRequest(entries=quotas), None))
    if users := _users(image, first):
        changes.append((AlterUserScramCredentialsRequest(deletions=users), None))
    secret = node.settings.find_str("delegation.token.secret.key") or ""
    for token_id, owner in _tokens(image, first).items():
        # Its owner alone may end it, and with its secret.
        request = ExpireDelegationTokenRequest(hmac=token_hmac(secret, token_id), expiry_time_period_ms=-1)
        changes.append((request, Sender(owner, "127.0.0.1")))
    return changes


def _quota_entries(now: MetadataImage, first: MetadataImage) -> list[AlterClientQuotasRequest.EntryData]:
    kind = AlterClientQuotasRequest
    entries = []
    for entity in dict.fromkeys((*now.client_quotas, *first.client_quotas)):
        ops = _quota_ops(now.client_quotas.get(entity, {}), first.client_quotas.get(entity, {}))
        if ops:
            entries.append(kind.EntryData(entity=_parts(entity), ops=ops))
    return entries


def _parts(entity: QuotaEntity) -> list[AlterClientQuotasRequest.EntityData]:
    return [AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]


def _quota_ops(now: Mapping[str, float], first: Mapping[str, float]) -> list[AlterClientQuotasRequest.OpData]:
    kind = AlterClientQuotasRequest.OpData
    gone = [kind(key=key, remove=True) for key in now if key not in first]
    return gone + [kind(key=key, value=value) for key, value in first.items() if now.get(key) != value]


def _users(now: MetadataImage, first: MetadataImage) -> list[AlterUserScramCredentialsRequest.ScramCredentialDeletion]:
    """One change of a user in a request: who has credentials of several mechanisms goes in several rounds."""
    kind = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    mechanisms = {name: mechanism for mechanism, name in now.scram if (mechanism, name) not in first.scram}
    return [kind(name=name, mechanism=mechanism) for name, mechanism in mechanisms.items()]


def _tokens(now: MetadataImage, first: MetadataImage) -> dict[str, str]:
    """Owners by id."""
    return {
        token_id: token.owner
        for token_id, token in now.delegation_tokens.items()
        if token_id not in first.delegation_tokens
    }
