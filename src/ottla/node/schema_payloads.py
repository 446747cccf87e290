"""Payloads of the three languages, as whoever validates them sees them: do they decode, and what are they called."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema, Reference, Resolved, TooComplex


@dataclass(frozen=True, slots=True)
class Text:
    """A schema as the registry tells it."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()


Decode = Callable[[bytes], str]
"""Why a payload is no record of its schema; empty if it is one."""


def decoder(schema: Text, resolved: Sequence[Resolved]) -> Decode:
    """Of a schema that cannot be used it says so for every payload."""
    from ottla.serdes.base import SerdeError  # noqa: PLC0415  with the first payload

    makers = {"AVRO": _avro, "JSON": _json, "PROTOBUF": _protobuf}
    try:
        return makers[schema.schema_type](schema.text, resolved)
    except KeyError:
        told = f"payloads of the type {schema.schema_type} cannot be decoded"
    except (InvalidSchema, TooComplex, SerdeError) as error:
        told = f"the schema itself cannot be used: {error}"
    return lambda _: told


def record_names(schema: Text) -> tuple[str, ...]:
    """What RecordNameStrategy may call it: every message of a Protobuf file can be what a record holds."""
    if schema.schema_type == "PROTOBUF":
        from ottla.registry.schemas.protobuf import Protobuf  # noqa: PLC0415

        try:
            file = Protobuf().parse(schema.text, (), Budget(DEFAULT_STEPS), new=False).file
        except (InvalidSchema, TooComplex):
            return ()
        return tuple(f"{file.package}.{each.name}" if file.package else each.name for each in file.messages)
    try:
        loaded = json.loads(schema.text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(loaded, dict):
        return ()
    if schema.schema_type == "JSON":
        return (str(loaded["title"]),) if "title" in loaded else ()
    name, namespace = str(loaded.get("name", "")), loaded.get("namespace")
    return (f"{namespace}.{name}" if namespace and "." not in name else name,)


def _avro(text: str, resolved: Sequence[Resolved]) -> Decode:
    """What follows a record is not looked at, as by whoever reads it."""
    from ottla.registry.schemas.avro import Avro  # noqa: PLC0415
    from ottla.serdes.avro.binary import FAULTS, Binary  # noqa: PLC0415

    read = Binary(Avro().parse(text, resolved, Budget(DEFAULT_STEPS), new=False).root).read

    def decode(payload: bytes) -> str:
        try:
            read(payload, 0)
        except FAULTS as error:
            return f"the payload is no record of its Avro schema: {str(error) or type(error).__name__}"
        return ""

    return decode


def _json(text: str, resolved: Sequence[Resolved]) -> Decode:
    from ottla.registry.schemas.json_schema import JsonSchemaLanguage  # noqa: PLC0415
    from ottla.registry.schemas.json_schema.validation import validator  # noqa: PLC0415

    check = validator(JsonSchemaLanguage().parse(text, resolved, Budget(DEFAULT_STEPS), new=False))

    def decode(payload: bytes) -> str:
        told = check(payload)
        return "" if told is None else f"the payload does not match its JSON Schema: {told}"

    return decode


def _protobuf(text: str, resolved: Sequence[Resolved]) -> Decode:
    from google.protobuf.message import DecodeError, Message  # noqa: PLC0415
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

    from ottla.registry.schemas.protobuf import Protobuf  # noqa: PLC0415
    from ottla.serdes.base import SerdeError  # noqa: PLC0415
    from ottla.serdes.schema_ids import read_indexes  # noqa: PLC0415

    parsed = Protobuf().parse(text, resolved, Budget(DEFAULT_STEPS), new=False)
    pool = parsed.pool()
    classes: dict[tuple[int, ...], type[Message]] = {}

    def decode(payload: bytes) -> str:
        try:
            path, at = read_indexes(payload, 0)
            if path not in classes:
                classes[path] = GetMessageClass(pool.FindMessageTypeByName(parsed.message_name(path)))
            classes[path].FromString(payload[at:])
        except (SerdeError, LookupError, DecodeError) as error:
            return f"the payload is no message of its Protobuf schema: {error}"
        return ""

    return decode
