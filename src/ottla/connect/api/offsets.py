"""Where connectors stand (KIP-875): read, alter, reset. Sources have it in the offsets topic, sinks in their group."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from ottla.client import groups
from ottla.client.aio.cluster import Cluster
from ottla.client.errors import ClientError, KafkaError
from ottla.connect.api.bodies import OffsetBody, OffsetsBody
from ottla.connect.api.desk import Desk, passing
from ottla.connect.configs import Connector
from ottla.connect.definitions import ConfigError
from ottla.connect.failures import WrongTopic
from ottla.connect.herder import CheckStopped
from ottla.connect.journal import prepare, read_offsets
from ottla.connect.offsets import Offsets as Kept
from ottla.connect.offsets import value_of
from ottla.connect.statuses import State
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition

_TOPIC, _PARTITION, _OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_GONE: Final = (Errors.GROUP_ID_NOT_FOUND, Errors.NONE)
_PATIENCE_S: Final = 15.0
_GLANCE_S: Final = 0.05
_LARGEST: Final = (1 << 63) - 1
_STORED: Final = "offset.storage.topic"
"""Of the worker's settings."""


class Offsets:
    __slots__ = ("_cluster", "_desk")

    def __init__(self, desk: Desk, cluster: Cluster) -> None:
        self._desk = desk
        self._cluster = cluster

    def routes(self) -> tuple[Route, ...]:
        path = "/connectors/{connector}/offsets"
        return (
            Route("GET", path, self.show, "Where a connector stands."),
            Route("PATCH", path, self.alter, "Set where a stopped connector stands.", body=OffsetsBody),
            Route("DELETE", path, self.reset, "Forget where a stopped connector stands."),
        )

    async def show(self, call: Call) -> Any:
        connector = self._desk.get(call.path["connector"])
        if self._desk.kind(connector.config) != "sink":
            found = (await self._positions(connector)).of(connector.name)
            return {"offsets": [{"partition": dict(each.partition), "offset": each.offset} for each in found]}
        committed = await self._asked(groups.committed(self._cluster, group_of(connector)))
        return {
            "offsets": [
                {"partition": {_PARTITION: place.partition, _TOPIC: place.topic}, "offset": {_OFFSET: at.offset}}
                for place, at in sorted(committed.items())
            ]
        }

    async def alter(self, call: Call) -> Any:
        return await passing(self._alter(call))

    async def _alter(self, call: Call) -> Any:
        body: OffsetsBody = call.body
        if not body.offsets:
            raise Problem(400, "Partitions / offsets need to be provided for an alter offsets request")
        connector = await self._stopped(call)
        if self._desk.kind(connector.config) == "sink":
            await self._alter_group(connector, body.offsets)
        else:
            await self._alter_source(connector, body.offsets)
        return {"message": "The offsets for this connector have been altered successfully"}

    async def reset(self, call: Call) -> Any:
        return await passing(self._reset(call))

    async def _reset(self, call: Call) -> Any:
        connector = await self._stopped(call)
        if self._desk.kind(connector.config) == "sink":
            outcome = await self._asked(groups.delete(self._cluster, [group_of(connector)]))
            for error in outcome.values():
                if error is not None and error.error not in _GONE:
                    raise Problem(
                        500, f"Failed to reset consumer group offsets for sink connector {connector.name}: {error}"
                    )
        else:
            found = (await self._positions(connector)).of(connector.name)
            await self._write(connector, [(each.key, None) for each in found])
        return {"message": "The offsets for this connector have been reset successfully"}

    async def _stopped(self, call: Call) -> Connector:
        """Raises Problem for one that is not wanted stopped, or does not come to a stop in time."""
        name = call.path["connector"]
        await self._desk.submit(call, CheckStopped(name))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_S
        statuses = self._desk.worker.state.statuses
        while (status := statuses.connector(name)) is not None and status.state is not State.STOPPED:
            if loop.time() > deadline:
                raise Problem(409, f"{name} is still stopping: its last batch has not ended. Try again soon.")
            await asyncio.sleep(_GLANCE_S)
        return self._desk.get(name)

    # Sources.

    async def _alter_source(self, connector: Connector, changes: list[OffsetBody]) -> None:
        written: list[tuple[bytes, bytes | None]] = []
        check = self._checker(connector)
        known = await self._positions(connector)
        for change in changes:
            if change.partition is None:
                raise Problem(400, "The partition for a source connector offset cannot be null or missing")
            try:
                check(change.partition, change.offset)
            except ValueError as error:
                raise Problem(400, str(error)) from None
            written.append((known.key(connector.name, change.partition), value_of(change.offset)))
        await self._write(connector, written)

    def _checker(self, connector: Connector) -> Any:
        """A source says which partitions and offsets it understands."""
        source: Any = self._desk.judge.plugin(connector.config).load()
        return source.check_offset

    async def _positions(self, connector: Connector) -> Kept:
        """Its own topic is followed by nobody: it is read when somebody asks."""
        worker, topic = self._desk.worker, self._topic(connector)
        if topic == self._desk.settings[_STORED]:
            return worker.state.offsets
        found: Kept = await self._asked(read_offsets(self._cluster, topic))
        return found

    def _topic(self, connector: Connector) -> str:
        """Raises Problem."""
        try:
            own = self._desk.worker.providers.resolve(connector.config).get("offsets.storage.topic")
        except ConfigError as error:
            raise Problem(400, str(error)) from None
        return own or str(self._desk.settings[_STORED])

    async def _write(self, connector: Connector, changes: list[tuple[bytes, bytes | None]]) -> None:
        topic, settings = self._topic(connector), self._desk.settings
        try:
            if topic != settings[_STORED] and changes:
                count, copies = settings["offset.storage.partitions"], settings["offset.storage.replication.factor"]
                await prepare(self._cluster, topic, count, copies, "offsets.storage.topic")
            await self._desk.worker.write_offsets(changes, topic)
        except WrongTopic as error:
            raise Problem(400, str(error)) from None
        except ClientError as error:
            raise Problem(500, f"Failed to modify offsets for source connector {connector.name}: {error}") from None

    # Sinks.

    async def _alter_group(self, connector: Connector, changes: list[OffsetBody]) -> None:
        wanted = dict(_kafka_offset(change) for change in changes)
        await self._check_places(wanted)
        group = group_of(connector)
        moved = {place: offset for place, offset in wanted.items() if offset is not None}
        dropped = [place for place, offset in wanted.items() if offset is None]
        outcomes: dict[TopicPartition, KafkaError | None] = {}
        if moved:
            outcomes |= await self._asked(groups.commit(self._cluster, group, moved))
        if dropped:
            outcomes |= await self._asked(groups.delete_offsets(self._cluster, group, dropped))
        for error in outcomes.values():
            if error is not None and error.error not in _GONE:
                raise Problem(500, f"Failed to alter consumer group offsets for connector {connector.name}: {error}")

    async def _check_places(self, wanted: Mapping[TopicPartition, int | None]) -> None:
        """Java takes any partition and offset, and answers 500 for some."""
        topics = sorted({place.topic for place in wanted})
        response = await self._asked(self._cluster.metadata(topics))
        counts = {found.name: len(found.partitions) for found in response.topics if not found.error_code}
        for place, offset in wanted.items():
            if place.partition >= counts.get(place.topic, 0):
                raise Problem(400, f"There is no partition {place.partition} of a topic {place.topic}")
            if offset is not None and not 0 <= offset <= _LARGEST:
                raise Problem(400, f"{offset} is no offset of {place}: 0 or more is")

    async def _asked(self, asking: Any) -> Any:
        try:
            return await asking
        except ClientError as error:
            raise Problem(500, f"The brokers could not answer: {error}") from None


def group_of(connector: Connector) -> str:
    return connector.config.get("consumer.override.group.id") or f"connect-{connector.name}"


def _kafka_offset(change: OffsetBody) -> tuple[TopicPartition, int | None]:
    partition = change.partition
    if partition is None:
        raise Problem(400, "The partition for a sink connector offset cannot be null or missing")
    if _TOPIC not in partition or _PARTITION not in partition:
        raise Problem(
            400, f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'"
        )
    topic, number = partition[_TOPIC], partition[_PARTITION]
    if topic is None:
        raise Problem(400, "Kafka topic names must be valid strings and may not be null")
    if number is None:
        raise Problem(400, "Kafka partitions must be valid numbers and may not be null")
    place = TopicPartition(
        str(topic),
        _whole(
            number,
            f"Failed to parse the following Kafka partition value in the provided offsets: '{number}'. Partition "
            "values for sink connectors need to be integers.",
        ),
    )
    if change.offset is None:
        return place, None
    if change.offset.get(_OFFSET) is None:
        raise Problem(400, f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'")
    said = change.offset[_OFFSET]
    return place, _whole(
        said,
        f"Failed to parse the following Kafka offset value in the provided offsets: '{said}'. Offset values for sink "
        "connectors need to be integers.",
    )


def _whole(value: Any, problem: str) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.removeprefix("-").isdecimal() or len(text) > 20:
        raise Problem(400, problem)
    return int(text)
