"""ASSERT TOPIC and ASSERT SCHEMA: asked again and again until it is so, or time is over."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.client.aio.cluster import Cluster
from ottla.model.errors import Errors
from ottla.registry.lookup import Registry, RegistryUnavailable, UnknownSchema
from ottla.sql import tree as t
from ottla.sql.errors import ASSERTION_FAILED, REGISTRY_MISSING, SERVER_ERROR, SqlError
from ottla.sql.server import entities

_USUAL_S: Final = 1.0
_LONGEST_S: Final = 600.0
_PAUSE_S: Final = 0.1


async def topic(cluster: Cluster, statement: t.AssertTopic, text: str) -> entities.Entity:
    """Raises SqlError, ClientError."""

    async def wrong() -> str | None:
        return await _topic_unlike(cluster, statement)

    await _until_right(wrong, statement.timeout)
    return entities.entity("assert_topic", text, topicName=statement.topic, exists=statement.exists)


async def schema(registry: Registry | None, statement: t.AssertSchema, text: str) -> entities.Entity:
    """Raises SqlError."""
    if registry is None:
        raise SqlError(REGISTRY_MISSING, "there is no schema registry: name one by ksql.schema.registry.url")

    async def wrong() -> str | None:
        there = await asyncio.to_thread(_schema_is_there, registry, statement)
        told = [f"subject {statement.subject}"] if statement.subject is not None else []
        told += [f"id {statement.id}"] if statement.id is not None else []
        about = f"a schema with {' and '.join(told)}"
        if there == statement.exists:
            return None
        return f"{about} does not exist" if statement.exists else f"{about} exists"

    await _until_right(wrong, statement.timeout)
    return entities.entity("assert_schema", text, subject=statement.subject, id=statement.id, exists=statement.exists)


async def _until_right(wrong: Callable[[], Awaitable[str | None]], within: t.Duration | None) -> None:
    patience_s = _USUAL_S if within is None else min(within.ms / 1000, _LONGEST_S)
    deadline = asyncio.get_running_loop().time() + patience_s
    while (found := await wrong()) is not None:
        if asyncio.get_running_loop().time() >= deadline:
            raise SqlError(ASSERTION_FAILED, found)
        await asyncio.sleep(_PAUSE_S)


async def _topic_unlike(cluster: Cluster, statement: t.AssertTopic) -> str | None:
    (found,) = (await cluster.metadata([statement.topic])).topics
    there = found.error_code != Errors.UNKNOWN_TOPIC_OR_PARTITION
    if there != statement.exists:
        return f"topic {statement.topic} {'does not exist' if statement.exists else 'exists'}"
    facts = {
        "PARTITIONS": len(found.partitions),
        "REPLICAS": len(found.partitions[0].replica_nodes) if found.partitions else 0,
    }
    for name, value in statement.properties:
        if statement.exists and facts.get(name.upper(), value) != value:
            return f"topic {statement.topic} has {facts[name.upper()]} {name.upper()}, not {value}"
    return None


def _schema_is_there(registry: Registry, statement: t.AssertSchema) -> bool:
    registry = copy.copy(registry)  # a client remembers for seconds what was not there: this one has no past
    try:
        found = None if statement.subject is None else registry.latest(statement.subject)
        if statement.id is None:
            return True
        by_id = registry.by_id(statement.id)
        if found is None or found.id == by_id.id:
            return True
        registry.find(str(statement.subject), by_id.language, by_id.text, by_id.references)
        return True
    except UnknownSchema:
        return False
    except RegistryUnavailable as error:
        raise SqlError(SERVER_ERROR, str(error)) from None
