"""Statements: one function for each word that begins one."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Final

from ottla.sql import tree as t
from ottla.sql.lexer import Place
from ottla.sql.parser.cursor import Cursor
from ottla.sql.parser.expressions import expression
from ottla.sql.parser.queries import duration, query, refuse_for_history
from ottla.sql.parser.types import type_name


def statement(cursor: Cursor) -> t.Statement:
    word = cursor.token.text if cursor.token.kind == "name" else ""
    begin = _BEGINNINGS.get(word)
    if begin is None:
        if word == "WITH":
            refuse_for_history(cursor, word)
        near = get_close_matches(word, _BEGINNINGS, 1)
        meant = f"; do you mean {near[0]}?" if near else ""
        cursor.wrong(f"a statement (CREATE, INSERT, SELECT, DROP, SHOW, DESCRIBE, ...){meant}")
    return begin(cursor)


# ---- CREATE


def _create(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("CREATE")
    or_replace = cursor.word("OR", "REPLACE")
    if not or_replace and cursor.is_word("TYPE"):
        return _create_type(cursor, at)
    if cursor.is_word("FUNCTION") or (cursor.is_any("AGGREGATE", "TABLE") and cursor.is_word("FUNCTION", ahead=1)):
        return _create_function(cursor, at, or_replace)
    if cursor.is_any("SOURCE", "SINK") and cursor.is_word("CONNECTOR", ahead=1):
        return _create_connector(cursor, at)
    is_source = cursor.word("SOURCE")
    kind = "TABLE" if cursor.word("TABLE") else "STREAM"
    if kind == "STREAM":
        cursor.expect_word("STREAM")
    if_not_exists = cursor.word("IF", "NOT", "EXISTS")
    name = cursor.name(f"the name of the {kind.lower()}")
    columns = _columns(cursor) if cursor.op("(") else ()
    properties = _properties(cursor) if cursor.word("WITH") else ()
    if not columns and cursor.word("AS"):
        if is_source:
            cursor.refuse(f"a SOURCE {kind} reads a topic, so it has columns and no query: leave SOURCE out")
        return t.CreateAs(kind, name, query(cursor), properties, or_replace, if_not_exists, at=at)
    return t.CreateSource(kind, name, columns, properties, or_replace, if_not_exists, is_source, at=at)


def _create_function(cursor: Cursor, at: Place, or_replace: bool) -> t.Statement:
    kind = next((each for each in ("AGGREGATE", "TABLE") if cursor.word(each)), "SCALAR")
    cursor.expect_word("FUNCTION")
    if_not_exists = cursor.word("IF", "NOT", "EXISTS")
    name = cursor.name("the name of the function")
    cursor.expect_op("(")
    parameters: tuple[tuple[str, t.TypeName], ...] = ()
    if not cursor.op(")"):
        parameters = cursor.listed(lambda each: (each.name("the name of a parameter"), type_name(each)))
        cursor.expect_op(")")
    cursor.expect_word("RETURNS")
    returns = type_name(cursor)
    keeps = type_name(cursor) if kind == "AGGREGATE" and cursor.word("KEEPS") else None
    cursor.expect_word("LANGUAGE", "PYTHON")
    properties = _properties(cursor) if cursor.word("WITH") else ()
    cursor.expect_word("AS")
    source = cursor.string("the text of the function between $$ and $$")
    return t.CreateFunction(
        kind, name, parameters, returns, source, keeps, properties, or_replace, if_not_exists, at=at
    )


def _columns(cursor: Cursor) -> tuple[t.ColumnDef, ...]:
    found = cursor.listed(_column)
    cursor.expect_op(")")
    return found


def _column(cursor: Cursor) -> t.ColumnDef:
    at = cursor.at
    name = cursor.name("the name of a column")
    kind = type_name(cursor)
    if cursor.word("PRIMARY"):
        cursor.expect_word("KEY")
        return t.ColumnDef(name, kind, "PRIMARY KEY", at=at)
    if cursor.word("KEY"):
        return t.ColumnDef(name, kind, "KEY", at=at)
    if cursor.word("HEADERS"):
        return t.ColumnDef(name, kind, "HEADERS", at=at)
    if cursor.word("HEADER"):
        cursor.expect_op("(")
        key = cursor.string("the key of a header in quotes")
        cursor.expect_op(")")
        return t.ColumnDef(name, kind, "HEADER", key, at=at)
    return t.ColumnDef(name, kind, at=at)


def _properties(cursor: Cursor) -> t.Properties:
    cursor.expect_op("(")
    found = cursor.listed(_property)
    cursor.expect_op(")")
    return found


def _property(cursor: Cursor) -> tuple[str, t.Constant]:
    at = cursor.at
    name = cursor.take().text if cursor.token.kind == "string" else cursor.name("a property")
    cursor.expect_op("=")
    value = expression(cursor)
    if not isinstance(value, t.Literal):
        cursor.refuse(f"the property {name} takes a text in quotes, a number, TRUE or FALSE")
    return t.Word(name, at), value.value


def _create_type(cursor: Cursor, at: Place) -> t.Statement:
    cursor.expect_word("TYPE")
    if_not_exists = cursor.word("IF", "NOT", "EXISTS")
    name = cursor.name("the name of the type")
    cursor.expect_word("AS")
    return t.CreateType(name, type_name(cursor), if_not_exists, at=at)


def _create_connector(cursor: Cursor, at: Place) -> t.Statement:
    kind = cursor.one_of("SOURCE", "SINK")
    cursor.expect_word("CONNECTOR")
    if_not_exists = cursor.word("IF", "NOT", "EXISTS")
    name = cursor.name("the name of the connector")
    cursor.expect_word("WITH")
    return t.CreateConnector(kind, name, _properties(cursor), if_not_exists, at=at)


# ---- INSERT, SELECT


def _insert(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("INSERT", "INTO")
    name_at, name = cursor.at, cursor.name("a stream or table")
    if cursor.is_word("SELECT") or cursor.is_word("WITH"):
        properties = _properties(cursor) if cursor.word("WITH") else ()
        return t.InsertInto(name, query(cursor), properties, name_at, at=at)
    return t.InsertValues(name, *_rows(cursor), name_at, at=at)


def _rows(cursor: Cursor) -> tuple[tuple[str, ...], tuple[t.Expr, ...]]:
    columns: tuple[str, ...] = ()
    if cursor.op("("):
        columns = cursor.listed(_column_name)
        cursor.expect_op(")")
    cursor.expect_word("VALUES")
    cursor.expect_op("(")
    values = cursor.listed(expression)
    cursor.expect_op(")")
    return columns, values


def _column_name(cursor: Cursor) -> t.Word:
    at = cursor.at
    return t.Word(cursor.name("the name of a column"), at)


def _select(cursor: Cursor) -> t.Statement:
    at = cursor.at
    return t.SelectQuery(query(cursor), at=at)


# ---- DROP, ALTER, queries


def _drop(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("DROP")
    kind = cursor.one_of("STREAM", "TABLE", "TYPE", "CONNECTOR", "FUNCTION")
    if_exists = cursor.word("IF", "EXISTS")
    name = cursor.name(f"the name of the {kind.lower()}")
    delete_topic = kind in ("STREAM", "TABLE") and cursor.word("DELETE", "TOPIC")
    return t.Drop(kind, name, if_exists, delete_topic, at=at)


def _alter(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("ALTER")
    if cursor.word("SYSTEM"):
        return t.SetProperty(*_assignment(cursor), system=True, at=at)
    kind = cursor.one_of("STREAM", "TABLE")
    name = cursor.name(f"the name of the {kind.lower()}")
    return t.AlterSource(kind, name, cursor.listed(_added), at=at)


def _added(cursor: Cursor) -> t.ColumnDef:
    cursor.expect_word("ADD")
    if cursor.is_word("COLUMN") and cursor.ahead(2).kind != "op":
        cursor.take()
    at = cursor.at
    return t.ColumnDef(cursor.name("the name of a column"), type_name(cursor), at=at)


def _control(cursor: Cursor) -> t.Statement:
    at = cursor.at
    action = cursor.take().text
    if cursor.word("ALL"):
        return t.Control(action, None, at=at)
    return t.Control(action, cursor.name("the id of a query, or ALL"), at=at)


# ---- EXPLAIN, DESCRIBE, SHOW, PRINT


def _explain(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("EXPLAIN")
    if cursor.is_any("SELECT", "CREATE", "INSERT") and cursor.ahead(1).kind != "end":
        return t.Explain(None, statement(cursor), at=at)
    return t.Explain(cursor.name("the id of a query, or a statement"), None, at=at)


def _describe(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.take()
    if cursor.is_any("FUNCTION", "CONNECTOR") and cursor.ahead(1).kind in ("name", "quoted"):
        kind = cursor.take().text
        at = cursor.at
        return t.Describe(kind, cursor.name(f"the name of a {kind.lower()}"), at=at)
    if cursor.is_any("STREAMS", "TABLES"):
        return t.Describe(cursor.take().text, extended=cursor.word("EXTENDED"), at=at)
    return t.Describe("SOURCE", cursor.name("a stream or table"), cursor.word("EXTENDED"), at=at)


_SHOWN: Final = (
    "STREAMS",
    "TABLES",
    "TOPICS",
    "QUERIES",
    "FUNCTIONS",
    "TYPES",
    "PROPERTIES",
    "VARIABLES",
    "CONNECTORS",
)


def _show(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.take()
    everything = cursor.word("ALL")
    scope = cursor.take().text if cursor.is_any("SOURCE", "SINK") else None
    if cursor.word("CONNECTOR", "PLUGINS"):
        return t.Show("CONNECTOR PLUGINS", scope=scope, at=at)
    what = cursor.one_of(*_SHOWN)
    if (scope and what != "CONNECTORS") or (everything and what != "TOPICS"):
        cursor.refuse(f"SHOW {scope or 'ALL'} {what} is nothing that can be shown")
    return t.Show(what, cursor.word("EXTENDED"), everything, scope, at=at)


def _print(cursor: Cursor) -> t.Statement:
    """A topic's name keeps its case, so it is taken from the text itself."""
    at = cursor.at
    cursor.expect_word("PRINT")
    topic = topic_name(cursor)
    from_beginning = cursor.word("FROM", "BEGINNING")
    interval = cursor.number() if cursor.word("INTERVAL") or cursor.word("SAMPLE") else None
    limit = cursor.number() if cursor.word("LIMIT") else None
    return t.PrintTopic(topic, from_beginning, interval, limit, at=at)


def topic_name(cursor: Cursor) -> str:
    """Letters, digits, '.', '_' and '-' without quotes, or anything in quotes."""
    token = cursor.token
    if token.kind in ("quoted", "string"):
        return cursor.take().text
    start = end = token.start
    while cursor.token.kind in ("name", "int", "decimal") or cursor.is_op("-") or cursor.is_op("."):
        if cursor.token.start != end:
            break
        end += len(cursor.take().text)
    if end == start:
        cursor.wrong("the name of a topic")
    return cursor.text[start:end]


# ---- SET, DEFINE


def _assignment(cursor: Cursor) -> tuple[str, str]:
    name = cursor.string("a property in quotes")
    cursor.expect_op("=")
    return name, cursor.string("its value in quotes")


def _set(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("SET")
    return t.SetProperty(*_assignment(cursor), at=at)


def _unset(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("UNSET")
    return t.UnsetProperty(cursor.string("a property in quotes"), at=at)


def _define(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("DEFINE")
    name = cursor.name("the name of a variable")
    cursor.expect_op("=")
    return t.Define(name, cursor.string("its text in quotes"), at=at)


def _undefine(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("UNDEFINE")
    return t.Undefine(cursor.name("the name of a variable"), at=at)


# ---- ASSERT, RUN


def _assert(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("ASSERT")
    if cursor.is_any("STREAM", "TABLE"):
        return _assert_source(cursor, at)
    if cursor.is_any("VALUES") or cursor.is_word("NULL", "VALUES"):
        tombstone = cursor.word("NULL")
        cursor.expect_word("VALUES")
        name = cursor.name("a stream or table")
        if tombstone:
            return t.AssertValues(name, *_key_values(cursor), tombstone=True, at=at)
        return t.AssertValues(name, *_rows(cursor), at=at)
    exists = not cursor.word("NOT", "EXISTS")
    if cursor.word("TOPIC"):
        topic = topic_name(cursor)
        properties = _properties(cursor) if cursor.word("WITH") else ()
        return t.AssertTopic(topic, properties, exists, _timeout(cursor), at=at)
    cursor.expect_word("SCHEMA")
    subject = topic_name(cursor) if cursor.word("SUBJECT") else None
    number = cursor.number("the id of a schema") if cursor.word("ID") else None
    if subject is None and number is None:
        cursor.wrong("SUBJECT or ID")
    return t.AssertSchema(subject, number, exists, _timeout(cursor), at=at)


def _key_values(cursor: Cursor) -> tuple[tuple[str, ...], tuple[t.Expr, ...]]:
    columns: tuple[str, ...] = ()
    if cursor.op("("):
        columns = cursor.listed(lambda each: each.name("the name of a column"))
        cursor.expect_op(")")
    if not cursor.word("KEY"):
        cursor.expect_word("VALUES")
    cursor.expect_op("(")
    values = cursor.listed(expression)
    cursor.expect_op(")")
    return columns, values


def _assert_source(cursor: Cursor, at: Place) -> t.Statement:
    kind = cursor.one_of("STREAM", "TABLE")
    name = cursor.name(f"the name of the {kind.lower()}")
    columns = _columns(cursor) if cursor.op("(") else ()
    properties = _properties(cursor) if cursor.word("WITH") else ()
    return t.AssertSource(t.CreateSource(kind, name, columns, properties, at=at), at=at)


def _timeout(cursor: Cursor) -> t.Duration | None:
    return duration(cursor) if cursor.word("TIMEOUT") else None


def _run(cursor: Cursor) -> t.Statement:
    at = cursor.at
    cursor.expect_word("RUN", "SCRIPT")
    return t.RunScript(cursor.string("the path of a file in quotes"), at=at)


_BEGINNINGS: Final[dict[str, Callable[[Cursor], t.Statement]]] = {
    "CREATE": _create,
    "INSERT": _insert,
    "SELECT": _select,
    "DROP": _drop,
    "ALTER": _alter,
    "TERMINATE": _control,
    "PAUSE": _control,
    "RESUME": _control,
    "EXPLAIN": _explain,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SHOW": _show,
    "LIST": _show,
    "PRINT": _print,
    "SET": _set,
    "UNSET": _unset,
    "DEFINE": _define,
    "UNDEFINE": _undefine,
    "ASSERT": _assert,
    "RUN": _run,
}
