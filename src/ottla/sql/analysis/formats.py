"""Which formats a source has: what WITH says, else what its origin has, else the defaults."""

from dataclasses import dataclass, replace
from typing import Final

from ottla.sql import tree as t
from ottla.sql.analysis.properties import Properties
from ottla.sql.analysis.refusals import meant, refuse
from ottla.sql.formats import FORMATS, check
from ottla.sql.formats.format import Format
from ottla.sql.functions.declare import Refused
from ottla.sql.model import Columns, DataSource

_OF_FORMATS: Final = ("FORMAT", "KEY_FORMAT", "VALUE_FORMAT")


@dataclass(frozen=True, slots=True)
class Defaults:
    """Formats where a statement names none."""

    key: str = "KAFKA"
    value: str | None = None
    wrap: bool = True
    """Whether a single value column is wrapped."""


def formats(
    said: Properties,
    keys: Columns,
    values: Columns,
    node: t.Node,
    origin: DataSource | None,
    defaults: Defaults,
) -> tuple[Format, Format]:
    key = said.upper("KEY_FORMAT") or said.upper("FORMAT")
    value = said.upper("VALUE_FORMAT") or said.upper("FORMAT")
    key_format = of_part(said, "KEY", key or _inherited_key(keys, origin, defaults.key), origin, node)
    if value is None and origin is None and defaults.value is None:
        refuse("VALUE_FORMAT is missing: WITH (..., VALUE_FORMAT='JSON')", node)
    value_format = of_part(
        said, "VALUE", value or (origin.value_format.name if origin else str(defaults.value)), origin, node
    )
    if not defaults.wrap and value_format.wrap is None and len(values) == 1 and FORMATS[value_format.name].unwraps:
        value_format = replace(value_format, wrap=False)
    asked = said.upper("KEY_FORMAT") if origin else None
    _check_key(key_format, keys, asked, said.place("KEY_FORMAT" if "KEY_FORMAT" in said.names else "FORMAT", node))
    for part, format, columns in (("key", key_format, keys), ("value", value_format, values)):
        try:
            check(format, columns, part)
        except Refused as refused:
            refuse(str(refused), _where(said, part.upper(), str(refused), node))
    return key_format, value_format


def _where(said: Properties, part: str, message: str, node: t.Node) -> t.Node | t.Word:
    """Of the properties that the message is about: the one that it names, else what names the format."""
    asked = [name for name in said.names if name not in _OF_FORMATS and name in message]
    named = [name for name in (f"{part}_FORMAT", "FORMAT") if name in said.names]
    return said.place((asked or named or [""])[0], node)


def _inherited_key(keys: Columns, origin: DataSource | None, default: str) -> str:
    if not keys:
        return "NONE" if origin else default
    inherited = origin.key_format.name if origin else default
    return default if inherited == "NONE" else inherited


def _check_key(format: Format, keys: Columns, said: str | None, node: t.Node | t.Word) -> None:
    if not keys and said not in (None, "NONE"):
        refuse("KEY_FORMAT is for key columns, and there is none: leave it out", node)
    if format.name == "NONE" and keys:
        refuse("KEY_FORMAT='NONE' is for streams without key columns: leave it out, or the columns", node)


def of_part(said: Properties, part: str, name: str, origin: DataSource | None, node: t.Node) -> Format:
    if name not in FORMATS:
        own = f"{part}_FORMAT"
        refuse(f"{name} is no format{meant(name, FORMATS)}", said.place(own if own in said.given else "FORMAT", node))
    before = None if origin is None else (origin.key_format if part == "KEY" else origin.value_format)
    same = before is not None and before.name == name
    delimiter = said.text(f"{part}_DELIMITER")
    wrap = said.truth("WRAP_SINGLE_VALUE") if part == "VALUE" else None
    return Format(
        name,
        delimiter=delimiter if delimiter is not None else (before.delimiter if same and before else None),
        wrap=wrap,
        schema_full_name=said.text(f"{part}_SCHEMA_FULL_NAME")
        or (said.text("VALUE_AVRO_SCHEMA_FULL_NAME") if part == "VALUE" else None),
        schema_id=said.number(f"{part}_SCHEMA_ID"),
        nullable_representation=said.upper(f"{part}_PROTOBUF_NULLABLE_REPRESENTATION"),
    )
