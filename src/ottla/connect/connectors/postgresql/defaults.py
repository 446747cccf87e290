"""Defaults of columns, for their schemas: literals are read, functions have a stand-in, as in Debezium."""

from __future__ import annotations

import re
from typing import Any, Final

from ottla.connect.connectors.postgresql.columns import Kind, TypeName
from ottla.connect.data.struct import Struct

_FUNCTION: Final = re.compile(r"\(?[A-Za-z0-9_.]+\(")
_LITERAL: Final = re.compile(r"'((?:[^']|'')*)'", re.S)
_CLOCKS: Final = frozenset(
    ("current_timestamp", "current_time", "current_date", "localtimestamp", "localtime", "now()", "current_user")
)
_STAND_INS: Final = {
    "bool": "false", "bpchar": "", "varchar": "", "text": "", "numeric": "0.0", "float4": "0.0", "float8": "0.0",
    "int2": "0", "int4": "0", "int8": "0", "json": "{}", "jsonb": "{}", "xml": "", "date": "1970-01-01",
    "uuid": "00000000-0000-0000-0000-000000000000", "time": "00:00:00", "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00", "interval": "00:00:00", "bit": "00", "varbit": "0",
}  # fmt: skip
"""What stands for a function; types without one have no defaults in schemas."""


def default_of(expression: str | None, type_: TypeName, kind: Kind) -> Any:
    """None: there is none that a schema could have."""
    if expression is None or (type_.name not in _STAND_INS and not type_.labels):
        return None
    text = _text(expression.strip(), type_)
    if text is None:
        return None
    if type_.name == "bool":
        text = "t" if text == "true" else "f"
    try:
        found = kind.read(text)
    except (ValueError, ArithmeticError):
        return None
    return None if isinstance(found, Struct) else found


def _text(expression: str, type_: TypeName) -> str | None:
    if expression.startswith("NULL"):
        return None
    if _FUNCTION.match(expression) or expression.lower() in _CLOCKS:
        return _STAND_INS.get(type_.name)
    literal = _LITERAL.search(expression)
    return expression if literal is None else literal[1].replace("''", "'")
