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


# ---- statements


def _with(properties: t.Properties) -> str:
    if not properties:
        return ""
    return " WITH (" + ", ".join(f"{string(key)}={constant(value)}" for key, value in properties) + ")"


def _begin(node: t.CreateSource | t.CreateAs, what: str) -> str:
    replacing = "OR REPLACE " if node.or_replace else ""
    return f"CREATE {replacing}{what} {'IF NOT EXISTS ' if node.if_not_exists else ''}{name(node.name)}"


def _listed(columns: tuple[str, ...]) -> str:
    return f" ({', '.join(map(name, columns))})" if columns else ""


def _timeout(given: t.Duration | None) -> str:
    return "" if given is None else f" TIMEOUT {text_of(given)}"


@text_of.register
def _(node: t.ColumnDef) -> str:
    role = f"HEADER({string(node.header)})" if node.header is not None else node.role
    return f"{name(node.name)} {text_of(node.type)} {role}".rstrip()


@text_of.register
def _(node: t.CreateSource) -> str:
    columns = f" ({_all(node.columns)})" if node.columns else ""
    return f"{_begin(node, 'SOURCE ' * node.is_source + node.kind)}{columns}{_with(node.properties)}"


@text_of.register
def _(node: t.CreateAs) -> str:
    return f"{_begin(node, node.kind)}{_with(node.properties)} AS {text_of(node.query)}"


@text_of.register
def _(node: t.InsertInto) -> str:
    return f"INSERT INTO {name(node.name)}{_with(node.properties)} {text_of(node.query)}"


@text_of.register
def _(node: t.InsertValues) -> str:
    return f"INSERT INTO {name(node.name)}{_listed(node.columns)} VALUES ({_all(node.values)})"


@text_of.register
def _(node: t.SelectQuery) -> str:
    return text_of(node.query)


@text_of.register
def _(node: t.Drop) -> str:
    there = "IF EXISTS " if node.if_exists else ""
    return f"DROP {node.kind} {there}{name(node.name)}{' DELETE TOPIC' * node.delete_topic}"


@text_of.register
def _(node: t.AlterSource) -> str:
    return f"ALTER {node.kind} {name(node.name)} " + ", ".join(f"ADD COLUMN {text_of(each)}" for each in node.columns)


@text_of.register
def _(node: t.Control) -> str:
    return f"{node.action} {'ALL' if node.query_id is None else name(node.query_id)}"


@text_of.register
def _(node: t.Explain) -> str:
    return f"EXPLAIN {name(node.query_id or '') if node.statement is None else text_of(node.statement)}"


@text_of.register
def _(node: t.Describe) -> str:
    kind = "" if node.kind == "SOURCE" else f" {node.kind}"
    return f"DESCRIBE{kind}{'' if node.name is None else ' ' + name(node.name)}{' EXTENDED' * node.extended}"


@text_of.register
def _(node: t.Show) -> str:
    scope = "" if node.scope is None else f"{node.scope} "
    return f"SHOW {'ALL ' * node.all}{scope}{node.what}{' EXTENDED' * node.extended}"


@text_of.register
def _(node: t.PrintTopic) -> str:
    interval = "" if node.interval is None else f" INTERVAL {node.interval}"
    limit = "" if node.limit is None else f" LIMIT {node.limit}"
    return f"PRINT {string(node.topic)}{' FROM BEGINNING' * node.from_beginning}{interval}{limit}"


@text_of.register
def _(node: t.SetProperty) -> str:
    return f"{'ALTER SYSTEM' if node.system else 'SET'} {string(node.name)}={string(node.value)}"


@text_of.register
def _(node: t.UnsetProperty) -> str:
    return f"UNSET {string(node.name)}"


@text_of.register
def _(node: t.Define) -> str:
    return f"DEFINE {name(node.name)} = {string(node.value)}"


@text_of.register
def _(node: t.Undefine) -> str:
    return f"UNDEFINE {name(node.name)}"


@text_of.register
def _(node: t.CreateType) -> str:
    return f"CREATE TYPE {'IF NOT EXISTS ' * node.if_not_exists}{name(node.name)} AS {text_of(node.type)}"


@text_of.register
def _(node: t.CreateFunction) -> str:
    kind = "" if node.kind == "SCALAR" else f"{node.kind} "
    parameters = ", ".join(f"{name(each)} {text_of(of)}" for each, of in node.parameters)
    keeps = "" if node.keeps is None else f" KEEPS {text_of(node.keeps)}"
    return (
        f"CREATE {'OR REPLACE ' * node.or_replace}{kind}FUNCTION {'IF NOT EXISTS ' * node.if_not_exists}"
        f"{name(node.name)} ({parameters}) RETURNS {text_of(node.returns)}{keeps} LANGUAGE PYTHON"
        f"{_with(node.properties)} AS $${node.source}$$"
    )


@text_of.register
def _(node: t.CreateConnector) -> str:
    there = "IF NOT EXISTS " if node.if_not_exists else ""
    return f"CREATE {node.kind} CONNECTOR {there}{name(node.name)}{_with(node.properties)}"


@text_of.register
def _(node: t.AssertTopic) -> str:
    there = "" if node.exists else "NOT EXISTS "
    return f"ASSERT {there}TOPIC {string(node.topic)}{_with(node.properties)}{_timeout(node.timeout)}"


@text_of.register
def _(node: t.AssertSchema) -> str:
    subject = "" if node.subject is None else f" SUBJECT {string(node.subject)}"
    number = "" if node.id is None else f" ID {node.id}"
    return f"ASSERT {'' if node.exists else 'NOT EXISTS '}SCHEMA{subject}{number}{_timeout(node.timeout)}"


@text_of.register
def _(node: t.AssertValues) -> str:
    word = "KEY" if node.tombstone else "VALUES"
    begin = f"ASSERT {'NULL ' * node.tombstone}VALUES {name(node.name)}{_listed(node.columns)}"
    return f"{begin} {word} ({_all(node.values)})"


@text_of.register
def _(node: t.AssertSource) -> str:
    return text_of(node.source).replace("CREATE", "ASSERT", 1)


@text_of.register
def _(node: t.RunScript) -> str:
    return f"RUN SCRIPT {string(node.path)}"
