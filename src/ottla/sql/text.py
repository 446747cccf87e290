"""The tree written back as SQL: one statement on one line, every name in the form in which it reads the same."""

import re
from decimal import Decimal
from functools import singledispatch
from typing import Final

from ottla.sql import tree as t
from ottla.sql.parser.cursor import RESERVED

_PLAIN: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_LOOSE: Final = (t.Chain, t.Binary, t.Unary, t.IsNull, t.Between, t.In, t.Like, t.Lambda, t.AtTimeZone)


def name(given: str) -> str:
    if _PLAIN.fullmatch(given) and given not in RESERVED:
        return given
    return "`" + given.replace("`", "``") + "`"


def string(given: str) -> str:
    return "'" + given.replace("'", "''") + "'"


@singledispatch
def text_of(node: t.Node) -> str:
    raise TypeError(f"{type(node).__name__} has no text")


def _tight(node: t.Expr) -> str:
    return f"({text_of(node)})" if isinstance(node, _LOOSE) else text_of(node)


def _all(nodes: "tuple[t.Node, ...]") -> str:
    return ", ".join(map(text_of, nodes))


# ---- expressions


@text_of.register
def _(node: t.Literal) -> str:
    return constant(node.value)


def constant(value: t.Constant) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return string(value)
        case float():
            return f"{value!r}E0" if "e" not in repr(value) else repr(value).upper()
        case Decimal():
            shown = format(value, "f")
            return shown if "." in shown else f"{shown}." if abs(value) < 1 << 63 else shown
    return str(value)


@text_of.register
def _(node: t.Column) -> str:
    return name(node.name) if not node.source else f"{name(node.source)}.{name(node.name)}"


@text_of.register
def _(node: t.Unary) -> str:
    return f"{node.operator} {_tight(node.operand)}"


@text_of.register
def _(node: t.Binary) -> str:
    return f"{_tight(node.left)} {node.operator} {_tight(node.right)}"


@text_of.register
def _(node: t.Chain) -> str:
    return f" {node.operator} ".join(map(_tight, node.terms))


@text_of.register
def _(node: t.IsNull) -> str:
    return f"{_tight(node.operand)} IS {'NOT ' * node.negated}NULL"


@text_of.register
def _(node: t.Between) -> str:
    return f"{_tight(node.operand)} {'NOT ' * node.negated}BETWEEN {_tight(node.low)} AND {_tight(node.high)}"


@text_of.register
def _(node: t.In) -> str:
    return f"{_tight(node.operand)} {'NOT ' * node.negated}IN ({_all(node.choices)})"


@text_of.register
def _(node: t.Like) -> str:
    escape = "" if node.escape is None else f" ESCAPE {string(node.escape)}"
    return f"{_tight(node.operand)} {'NOT ' * node.negated}LIKE {_tight(node.pattern)}{escape}"


@text_of.register
def _(node: t.Case) -> str:
    operand = "" if node.operand is None else f" {_tight(node.operand)}"
    whens = "".join(f" WHEN {text_of(when)} THEN {text_of(then)}" for when, then in node.whens)
    otherwise = "" if node.otherwise is None else f" ELSE {text_of(node.otherwise)}"
    return f"CASE{operand}{whens}{otherwise} END"


@text_of.register
def _(node: t.TypeName) -> str:
    if node.quoted:
        return "`" + node.name.replace("`", "``") + "`"
    if node.name == "STRUCT":
        return "STRUCT<" + ", ".join(f"{name(field)} {text_of(kind)}" for field, kind in node.fields) + ">"
    if not node.arguments:
        return node.name
    inner = ", ".join(str(each) if isinstance(each, int) else text_of(each) for each in node.arguments)
    return f"{node.name}({inner})" if node.name == "DECIMAL" else f"{node.name}<{inner}>"


@text_of.register
def _(node: t.Cast) -> str:
    return f"CAST({text_of(node.operand)} AS {text_of(node.type)})"


@text_of.register
def _(node: t.Subscript) -> str:
    return f"{_based(node.base)}[{text_of(node.index)}]"


@text_of.register
def _(node: t.Dereference) -> str:
    return f"{_based(node.base)}->{'*' if node.field == '*' else name(node.field)}"


def _based(node: t.Expr) -> str:
    shown = _tight(node)
    return f"({shown})" if isinstance(node, t.Literal) and shown.startswith("-") else shown


@text_of.register
def _(node: t.Call) -> str:
    return f"{name(node.name)}({'*' if node.star else _all(node.arguments)})"


@text_of.register
def _(node: t.Lambda) -> str:
    return f"({', '.join(map(name, node.parameters))}) => {text_of(node.body)}"


@text_of.register
def _(node: t.ArrayOf) -> str:
    return f"ARRAY[{_all(node.items)}]"


@text_of.register
def _(node: t.MapOf) -> str:
    return "MAP(" + ", ".join(f"{text_of(key)} := {text_of(each)}" for key, each in node.entries) + ")"


@text_of.register
def _(node: t.StructOf) -> str:
    return "STRUCT(" + ", ".join(f"{name(field)} := {text_of(each)}" for field, each in node.fields) + ")"


@text_of.register
def _(node: t.Unit) -> str:
    return node.name


@text_of.register
def _(node: t.AtTimeZone) -> str:
    return f"{_tight(node.operand)} AT TIME ZONE {string(node.zone)}"


# ---- queries


@text_of.register
def _(node: t.Star) -> str:
    return "*" if node.source is None else f"{name(node.source)}.*"


@text_of.register
def _(node: t.Item) -> str:
    shown = text_of(node.expression)
    return shown if node.alias is None else f"{shown} AS {name(node.alias)}"


@text_of.register
def _(node: t.Source) -> str:
    return name(node.name) if node.alias is None else f"{name(node.name)} AS {name(node.alias)}"


@text_of.register
def _(node: t.Duration) -> str:
    return f"{node.amount} {node.unit}S"


@text_of.register
def _(node: t.Within) -> str:
    grace = "" if node.grace is None else f" GRACE PERIOD {text_of(node.grace)}"
    return f"WITHIN ({text_of(node.before)}, {text_of(node.after)}){grace}"


@text_of.register
def _(node: t.Join) -> str:
    within = "" if node.within is None else f" {text_of(node.within)}"
    return f"{node.kind} JOIN {text_of(node.source)}{within} ON {text_of(node.on)}"


@text_of.register
def _(node: t.Window) -> str:
    size = text_of(node.size)
    parts = [size if node.kind == "SESSION" else f"SIZE {size}"]
    parts += [] if node.advance is None else [f"ADVANCE BY {text_of(node.advance)}"]
    parts += [] if node.retention is None else [f"RETENTION {text_of(node.retention)}"]
    parts += [] if node.grace is None else [f"GRACE PERIOD {text_of(node.grace)}"]
    return f"WINDOW {node.kind} ({', '.join(parts)})"


@text_of.register
def _(node: t.Query) -> str:
    parts = [f"SELECT {_all(node.items)} FROM {text_of(node.source)}", *map(text_of, node.joins)]
    parts += [] if node.window is None else [text_of(node.window)]
    parts += [] if node.where is None else [f"WHERE {text_of(node.where)}"]
    parts += [f"GROUP BY {_all(node.group_by)}"] if node.group_by else []
    parts += [f"PARTITION BY {_all(node.partition_by)}"] if node.partition_by else []
    parts += [] if node.having is None else [f"HAVING {text_of(node.having)}"]
    parts += [] if node.emit is None else [f"EMIT {node.emit}"]
    parts += [] if node.limit is None else [f"LIMIT {node.limit}"]
    return " ".join(parts)
