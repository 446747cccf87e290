"""PROTOBUF by the schemas of a registry, and PROTOBUF_NOSR by the columns alone, with field numbers in their order.

A field that is absent is its default (0, '', false), unless *_PROTOBUF_NULLABLE_REPRESENTATION says how nulls are told
from that: OPTIONAL by proto3's presence, WRAPPER by the wrapper messages.
"""

from functools import lru_cache
from typing import Any, Final

from ottla.registry.lookup import Registry
from ottla.serdes.base import Serde, SerdeError, shown
from ottla.serdes.types import Type
from ottla.sql.arguments import Refused
from ottla.sql.formats.fitting import Unfit, as_message, fitted
from ottla.sql.formats.format import Format
from ottla.sql.formats.registered import RegisteredRows, columns_of, schema_of
from ottla.sql.formats.rows import Columns, Headers, RowSerde
from ottla.sql.types import sql_text

MESSAGE: Final = "ConnectDefault1"

_SCALARS: Final = {
    "boolean": ("bool", "Bool"),
    "int": ("int32", "Int32"),
    "long": ("int64", "Int64"),
    "double": ("double", "Double"),
    "string": ("string", "String"),
    "binary": ("bytes", "Bytes"),
}
_MESSAGES: Final = {
    "decimal": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    "date": ("google.type.Date", "google/type/date.proto"),
    "time": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    "timestamp": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}


def check(format: Format, columns: Columns, part: str) -> None:
    known = (None, "OPTIONAL", "WRAPPER")
    if format.nullable_representation not in known:
        raise Refused(
            f"{part.upper()}_PROTOBUF_NULLABLE_REPRESENTATION is OPTIONAL or WRAPPER, "
            f"not {format.nullable_representation}"
        )
    for name, kind in columns:
        if not (name.isidentifier() and name.isascii()):
            raise Refused(f"Protobuf has no field named {name!r}: letters, digits and _ alone; rename it with AS")
        if _nested_list(kind):
            raise Refused(
                f"Protobuf has no lists of lists or maps, as {name} {sql_text(kind)} has: put a STRUCT between"
            )


def _nested_list(kind: Type) -> bool:
    inner = kind.element
    if inner is not None and inner.name in {"array", "map"}:
        return True
    return any(_nested_list(part) for part in kind.parts())


# ---- the schema of columns


def schema_text(columns: Columns, nulls: str | None, full_name: str | None = None) -> str:
    package, _, name = (full_name or MESSAGE).rpartition(".")
    imports: set[str] = set()
    message = _message(name, columns, nulls, imports)
    lines = ['syntax = "proto3";', *([f"package {package};"] if package else [])]
    lines += [f'import "{each}";' for each in sorted(imports)]
    return "\n".join([*lines, message]) + "\n"


def _message(name: str, columns: Columns, nulls: str | None, imports: set[str]) -> str:
    inner: list[str] = []
    fields = [
        f"  {_field(field, kind, nulls, imports, inner)} {field} = {number};"
        for number, (field, kind) in enumerate(columns, 1)
    ]
    return "\n".join([f"message {name} {{", *fields, *inner, "}"])


def _field(field: str, kind: Type, nulls: str | None, imports: set[str], inner: list[str]) -> str:
    element = kind.element
    if kind.name == "array" and element is not None:
        return f"repeated {_single(field, element, imports, inner)}"
    if kind.name == "map" and element is not None:
        return f"map<string, {_single(field, element, imports, inner)}>"
    if kind.name not in _SCALARS or nulls is None:
        return _single(field, kind, imports, inner)
    if nulls == "OPTIONAL":
        return f"optional {_single(field, kind, imports, inner)}"
    imports.add("google/protobuf/wrappers.proto")
    return f"google.protobuf.{_SCALARS[kind.name][1]}Value"


def _single(field: str, kind: Type, imports: set[str], inner: list[str]) -> str:
    if kind.name == "struct":
        inner.append(_message(f"{field}_Message", kind.fields, None, imports))
        return f"{field}_Message"
    if kind.name in _MESSAGES:
        name, where = _MESSAGES[kind.name]
        imports.add(where)
        return name
    return _SCALARS[kind.name][0]


# ---- with a registry


class ProtobufRows(RegisteredRows):
    def as_written(self, content: Any) -> Any:
        return as_message(self.content)(content)


def serde(format: Format, columns: Columns, part: str, registry: Registry) -> Serde[Any]:
    from ottla.serdes.protobuf import ProtobufSerde  # noqa: PLC0415  few need it

    if format.schema_id is not None:
        text = registry.by_id(format.schema_id).text
        writing = ProtobufSerde(registry, text, part=part, message=format.schema_full_name)
    else:
        text = schema_text(columns, format.nullable_representation, format.schema_full_name)
        writing = ProtobufSerde(registry, text, part=part)
    return ProtobufRows(columns, part, True, ProtobufSerde(registry, part=part), writing, "PROTOBUF")


def inferred(format: Format, registry: Registry, topic: str, part: str) -> Columns:
    from ottla.serdes.protobuf import ProtobufSerde  # noqa: PLC0415  few need it

    found = schema_of(format, registry, "PROTOBUF", topic, part)
    own = ProtobufSerde(registry, found.text, part=part, message=format.schema_full_name, references=found.references)
    return columns_of(_plain(own.type), part)


_DECIMAL_FIELDS: Final = ("value", "precision", "scale")
_DATE_FIELDS: Final = ("year", "month", "day")
_TIME_FIELDS: Final = ("hours", "minutes", "seconds", "nanos")


def _plain(kind: Type) -> Type:
    """Messages that stand for decimals, dates and times as these."""
    if kind.name == "struct":
        names = tuple(name for name, _ in kind.fields)
        if names == _DECIMAL_FIELDS:
            return Type("decimal", precision=38, scale=10)
        if names == _DATE_FIELDS:
            return Type("date")
        if names == _TIME_FIELDS:
            return Type("time")
        return Type("struct", fields=tuple((name, _plain(part)) for name, part in kind.fields))
    return kind if kind.element is None else Type(kind.name, _plain(kind.element))


# ---- without


@lru_cache(1024)
def _codec(text: str) -> Any:
    """The class of the first message, what reads one, and what fills one."""
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415  few need it

    from ottla.registry.schemas.base import DEFAULT_STEPS, Budget  # noqa: PLC0415
    from ottla.registry.schemas.protobuf import Protobuf  # noqa: PLC0415
    from ottla.serdes.protobuf import filling, reading  # noqa: PLC0415

    schema = Protobuf().parse(text, (), Budget(DEFAULT_STEPS), new=False)
    descriptor = schema.pool().FindMessageTypeByName(schema.message_name((0,)))
    return GetMessageClass(descriptor), reading(descriptor), filling(descriptor)


class PlainProtobufRows(RowSerde):
    name = "PROTOBUF_NOSR"

    def __init__(self, columns: Columns, part: str, text: str) -> None:
        super().__init__(columns, part, wrapped=True)
        self._text = text

    def read_content(self, data: bytes, headers: Headers) -> Any:
        from google.protobuf.message import DecodeError  # noqa: PLC0415

        made, read, _ = _codec(self._text)
        try:
            return fitted(self.content)(read(made.FromString(data)))
        except (DecodeError, Unfit, ValueError, KeyError, ArithmeticError) as error:
            raise SerdeError(f"{self!r}: {error}; found {shown(data)}") from error

    def write_content(self, content: Any, topic: str) -> bytes:
        made, _, fill = _codec(self._text)
        message = made()
        try:
            fill(message, as_message(self.content)(content))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise SerdeError(f"{self!r}: {error}") from error
        data: bytes = message.SerializeToString(deterministic=True)
        return data


def plain_serde(format: Format, columns: Columns, part: str) -> Serde[Any]:
    return PlainProtobufRows(columns, part, schema_text(columns, format.nullable_representation))
