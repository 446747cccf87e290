"""The bytes of `_schemas`: Confluent's keys, to the byte, as the topic is compacted by them, and its values."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ottla.registry.entities import ConfigValue, Kept, ModeValue, SchemaValue
from ottla.registry.machine import records as r
from ottla.registry.machine.names import GLOBAL, normal

_TENANT: Final = "default"


class Unreadable(ValueError):
    """A record that is none of ours, nor of Confluent's."""


# Keys. The order of members is part of them.


class _SchemaKey(msgspec.Struct):
    keytype: str
    subject: str
    version: int
    magic: int


class _SubjectKey(msgspec.Struct, omit_defaults=True):
    keytype: str
    subject: str | UnsetType | None
    magic: int


class _ContextKey(msgspec.Struct):
    keytype: str
    tenant: str
    context: str
    magic: int


class _AnyKey(msgspec.Struct):
    keytype: str
    subject: str | UnsetType | None = UNSET
    version: int = 0
    context: str = ""


class _Deleted(msgspec.Struct):
    subject: str
    version: int


class _Cleared(msgspec.Struct, omit_defaults=True):
    subject: str | None = None


class _Context(msgspec.Struct):
    tenant: str
    context: str


_encode: Final = msgspec.json.Encoder().encode
_key: Final = msgspec.json.Decoder(_AnyKey).decode
_schema: Final = msgspec.json.Decoder(SchemaValue).decode

_NOOP_KEY: Final = b'{"keytype":"NOOP","magic":0}'


def encode(record: r.Record) -> tuple[bytes, bytes | None]:
    """Key and value."""
    match record:
        case r.SchemaPut(value):
            return _schema_key(value.subject, value.version), _encode(value)
        case r.SchemaGone(subject, version):
            return _schema_key(subject, version), None
        case r.ConfigPut(subject, config, old_form):
            return _subject_key("CONFIG", subject, old_form), _encode(config)
        case r.ConfigGone(subject, old_form):
            return _subject_key("CONFIG", subject, old_form), None
        case r.ModePut(subject, mode, old_form):
            return _subject_key("MODE", subject, old_form), _mode(subject, mode)
        case r.ModeGone(subject, old_form):
            return _subject_key("MODE", subject, old_form), None
        case r.SubjectDeleted(subject, version):
            return _subject_key("DELETE_SUBJECT", subject), _encode(_Deleted(subject, version))
        case r.SubjectCleared(subject):
            return _subject_key("CLEAR_SUBJECT", subject), _encode(_Cleared(subject or None))
        case r.ContextPut(context):
            return _context_key(context), _encode(_Context(_TENANT, context))
        case r.ContextGone(context):
            return _context_key(context), None
        case r.Noop(kept):
            return _NOOP_KEY, _encode(kept) if kept is not None else None


def _schema_key(subject: str, version: int) -> bytes:
    return _encode(_SchemaKey("SCHEMA", subject, version, 1))


def _subject_key(keytype: str, subject: str, old_form: bool = False) -> bytes:
    """The global one has no subject, since 6.2; before it was null."""
    return _encode(_SubjectKey(keytype, subject or (None if old_form else UNSET), 0))


def _context_key(context: str) -> bytes:
    return _encode(_ContextKey("CONTEXT", _TENANT, context, 0))


def _mode(subject: str, mode: str) -> bytes:
    return _encode({"subject": subject, "mode": mode} if subject else {"mode": mode})


def decode(key: bytes | None, value: bytes | None) -> r.Record | None:
    """None: a kind of record that a registry with more features writes. Raises Unreadable."""
    try:
        found = _key(key or b"")
        return _decoded(found, value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(str(error)) from None


def _decoded(key: _AnyKey, value: bytes | None) -> r.Record | None:
    subject = normal(key.subject or GLOBAL) if key.subject is not UNSET else GLOBAL
    old_form = key.subject is None
    match key.keytype:
        case "SCHEMA":
            if value is None:
                return r.SchemaGone(subject, key.version)
            return r.SchemaPut(_schema_value(value, subject, key.version))
        case "CONFIG":
            if value is None:
                return r.ConfigGone(subject, old_form)
            config = _lenient(value, ConfigValue)
            return r.ConfigPut(subject, msgspec.structs.replace(config, subject=subject or None), old_form)
        case "MODE":
            if value is None:
                return r.ModeGone(subject, old_form)
            return r.ModePut(subject, _lenient(value, ModeValue).mode, old_form)
        case "DELETE_SUBJECT":
            return r.SubjectDeleted(subject, _lenient(value, _Deleted).version) if value is not None else None
        case "CLEAR_SUBJECT":
            return r.SubjectCleared(subject) if value is not None else None
        case "CONTEXT":
            return r.ContextPut(key.context) if value is not None else r.ContextGone(key.context)
        case "NOOP":
            return r.Noop(_kept(value))
        case _:
            return None


def _schema_value(value: bytes, subject: str, version: int) -> SchemaValue:
    try:
        found = _schema(value)
    except msgspec.ValidationError:
        found = _lenient(value, SchemaValue)
    if found.subject != subject or found.version != version:
        found = msgspec.structs.replace(found, subject=subject, version=version)
    return found


def _kept(value: bytes | None) -> Kept | None:
    try:
        return _lenient(value, Kept) if value else None
    except msgspec.DecodeError:
        return None  # nobody says what the value of a NOOP has to be


def _lenient(value: bytes, kind: Any) -> Any:
    """Other servers write null for what is absent."""
    return msgspec.convert(_without_nulls(msgspec.json.decode(value)), kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
