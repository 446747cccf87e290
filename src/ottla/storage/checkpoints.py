"""The small text files of a log directory, in Kafka's bytes: encode and decode only, no disk.

Each decoder raises CorruptCheckpoint for anything it cannot read; the caller rebuilds what the file would have told it.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.model.ids import TopicPartition, Uuid, parse_uuid, uuid_text


class CorruptCheckpoint(ValueError):
    """Unknown version, wrong count or a line that makes no sense."""


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets = {}
    for line in _entries(data):
        try:
            topic, partition, offset = line.split()
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as error:
            raise CorruptCheckpoint(f"not a topic, partition and offset: {line!r}") from error
    return offsets


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    body = [f"{epoch} {start}" for epoch, start in entries]
    return ("\n".join(["0", str(len(body)), *body]) + "\n").encode()


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    entries = []
    for line in _entries(data):
        try:
            epoch, start = line.split()
            entries.append((int(epoch), int(start)))
        except ValueError as error:
            raise CorruptCheckpoint(f"not an epoch and its start offset: {line!r}") from error
    return entries


def _entries(data: bytes) -> list[str]:
    try:
        lines = data.decode().splitlines()
        if len(lines) < 2:  # Kafka creates its checkpoints empty
            return []
        version, count = int(lines[0]), int(lines[1])
    except ValueError as error:
        raise CorruptCheckpoint("no version and count at the start") from error
    if version != 0:
        raise CorruptCheckpoint(f"unknown version {version}")
    if len(lines) - 2 != count:
        raise CorruptCheckpoint(f"{count} entries announced, {len(lines) - 2} found")
    return lines[2:]


def encode_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> Uuid:
    try:
        version_line, id_line, *_ = data.decode().splitlines()
        version_name, version = version_line.split(": ", 1)
        id_name, text = id_line.split(": ", 1)
        topic_id = parse_uuid(text.strip())
        if version_name != "version" or id_name != "topic_id" or int(version) < 0 or not any(topic_id):
            raise ValueError(data)
    except ValueError as error:
        raise CorruptCheckpoint("not a version and a topic id") from error
    return topic_id


class MetaProperties(NamedTuple):
    cluster_id: str
    node_id: int
    directory_id: Uuid | None = None


def encode_meta_properties(meta: MetaProperties) -> bytes:
    lines = ["#", f"cluster.id={meta.cluster_id}", f"node.id={meta.node_id}", "version=1"]
    if meta.directory_id is not None:
        lines.insert(2, f"directory.id={uuid_text(meta.directory_id)}")
    return ("\n".join(lines) + "\n").encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Version 1, and version 0 of older releases, where node.id was called broker.id."""
    properties = {}
    for line in data.decode(errors="replace").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", "!")):
            properties[name.strip()] = value.strip().replace("\\", "")
    try:
        if properties.get("version", "0") not in ("0", "1"):
            raise ValueError(f"unknown version {properties['version']}")
        node_id = int(properties["node.id"] if "node.id" in properties else properties["broker.id"])
        directory_id = parse_uuid(properties["directory.id"]) if "directory.id" in properties else None
        return MetaProperties(properties["cluster.id"], node_id, directory_id)
    except KeyError as error:
        raise CorruptCheckpoint(f"{error.args[0]} is missing") from error
    except ValueError as error:
        raise CorruptCheckpoint(str(error)) from error


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> int:
    """The broker epoch; -1 when the marker is there but names none, as brokers before 3.8 wrote it."""
    try:
        content = json.loads(data)
        epoch = content["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return -1
    return epoch if isinstance(epoch, int) else -1
