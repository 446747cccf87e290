"""What keys and values of records mean: text, the metadata log, coordinators' topics, control records."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final

from ottla.cli.output import Json
from ottla.model.ids import uuid_text
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, Message, Struct
from ottla.protocol.frames import decode_metadata_record
from ottla.protocol.records import Record

Decoder = Callable[[Record], dict[str, Json]]
"""Raises ValueError for what it cannot make sense of."""

_CONTROL_MESSAGES: Final = {
    2: ("LeaderChange", "LeaderChangeMessage"),
    3: ("SnapshotHeader", "SnapshotHeaderRecord"),
    4: ("SnapshotFooter", "SnapshotFooterRecord"),
    5: ("KRaftVersion", "KRaftVersionRecord"),
    6: ("KRaftVoters", "VotersRecord"),
}
_MARKERS: Final = {0: "ABORT", 1: "COMMIT"}


def text(record: Record) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    if record.key is not None:
        fields["key"] = record.key.decode(errors="replace")
    if record.value is not None:
        fields["payload"] = record.value.decode(errors="replace")
    return fields


def metadata(record: Record) -> dict[str, Json]:
    if record.value is None:
        raise ValueError("a record of the metadata log has no value")
    message, version = decode_metadata_record(record.value)
    return {"payload": {"type": _constant(type(message).__name__), "version": version, "data": as_json(message)}}


def coordinator(table: Mapping[int, tuple[str, str]]) -> Decoder:
    """Key: int16 type and struct. Value: int16 version and struct; null deletes."""

    def decode(record: Record) -> dict[str, Json]:
        if record.key is None or len(record.key) < 2:
            raise ValueError("a coordinator's record has no key")
        kind = int.from_bytes(record.key[:2], "big", signed=True)
        if kind not in table:
            raise ValueError(f"type {kind} is not known")
        key_name, value_name = table[kind]
        key = messages.named(key_name).decode(record.key, 0, 2)
        fields: dict[str, Json] = {"key": {"type": str(kind), "data": as_json(key)}}
        if record.value is None:
            fields["payload"] = "<DELETE>"
        else:
            version = int.from_bytes(record.value[:2], "big", signed=True)
            value = messages.named(value_name).decode(record.value, version, 2)
            fields["payload"] = {"version": str(version), "data": as_json(value)}
        return fields

    return decode


def decoder_for(directory: str) -> Decoder:
    """By the name of the partition's directory: nobody has to say what __consumer_offsets-7 holds."""
    topic = directory.rsplit("-", 1)[0]
    if topic == "__cluster_metadata":
        return metadata
    tables: dict[str, Mapping[int, tuple[str, str]]] = {
        "__consumer_offsets": messages.GROUP_RECORDS,
        "__transaction_state": messages.TRANSACTION_RECORDS,
        "__share_group_state": messages.SHARE_RECORDS,
    }
    return coordinator(tables[topic]) if topic in tables else text


def control_fields(record: Record) -> dict[str, Json]:
    if record.key is None or len(record.key) < 4:
        raise ValueError("a control record has no key")
    kind = int.from_bytes(record.key[2:4], "big", signed=True)
    value = record.value or b""
    if kind in _MARKERS:
        # The marker's version stands in front of it; the KRaft records carry theirs as a field.
        marker = messages.EndTxnMarker.decode(value, 0, 2)
        return {"endTxnMarker": _MARKERS[kind], "coordinatorEpoch": marker.coordinator_epoch}
    if kind not in _CONTROL_MESSAGES:
        return {"controlType": f"UNKNOWN({kind})"}
    name, message = _CONTROL_MESSAGES[kind]
    cls = messages.named(message)
    version = int.from_bytes(value[:2], "big", signed=True)
    return {name: as_json(_at_known_version(cls, value, version))}


def _at_known_version(cls: type[Message], value: bytes, version: int) -> Message:
    if version not in cls.DECODERS:
        raise DecodeError(f"{cls.__name__} of version {version} is not known")
    return cls.decode(value, version)


def as_json(value: object) -> Json:
    """Kafka's field names; ids as Kafka prints them, other bytes as base64."""
    if isinstance(value, Struct):
        return {_camel(name): as_json(getattr(value, name)) for name in value.FIELDS}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        return uuid_text(raw) if len(raw) == 16 else b64encode(raw).decode()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is no part of a message")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _constant(name: str) -> str:
    """TopicRecord -> TOPIC_RECORD, as Kafka names its record types."""
    return "".join(f"_{char}" if char.isupper() and index else char for index, char in enumerate(name)).upper()
