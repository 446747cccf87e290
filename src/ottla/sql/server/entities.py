"""What statements answer, as ksqlDB's clients read it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.serdes.types import Type
from ottla.sql.catalog import Catalog, PersistentQuery
from ottla.sql.functions import AGGREGATES, SCALARS, TABLE_FUNCTIONS
from ottla.sql.functions.declare import AggregateFunction, Scalar, TableFunction
from ottla.sql.functions.python import PythonFunction
from ottla.sql.functions.signatures import split_types
from ottla.sql.model import Columns, DataSource
from ottla.sql.properties import KSQL
from ottla.sql.types import sql_text

Entity = dict[str, Any]

_BASE: Final = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "double": "DOUBLE",
    "decimal": "DECIMAL",
    "string": "STRING",
    "binary": "BYTES",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "array": "ARRAY",
    "map": "MAP",
    "struct": "STRUCT",
}


def entity(kind: str, text: str, **content: Any) -> Entity:
    return {"@type": kind, "statementText": text, **content, "warnings": []}


def schema_of(kind: Type) -> Entity:
    """A type as an object."""
    found: Entity = {"type": _BASE[kind.name], "fields": None, "memberSchema": None}
    if kind.name == "decimal":
        found["parameters"] = {"precision": kind.precision, "scale": kind.scale}
    if kind.name == "struct":
        found["fields"] = [{"name": name, "schema": schema_of(part)} for name, part in kind.fields]
    if kind.element is not None:
        found["memberSchema"] = schema_of(kind.element)
    return found


def fields_of(source: DataSource) -> list[Entity]:
    mark = "KEY"
    keys = [{"name": name, "schema": schema_of(kind), "type": mark} for name, kind in source.keys]
    values = [{"name": name, "schema": schema_of(kind)} for name, kind in source.values]
    headers = [
        {"name": each.name, "schema": schema_of(each.type), "type": "HEADER", "headerKey": each.key}
        for each in source.headers
    ]
    return [*keys, *values, *headers]


def columns_text(columns: Columns, keys: Sequence[str] = ()) -> str:
    """A schema as text: `ID` BIGINT KEY, `NAME` STRING."""
    return ", ".join(f"`{name}` {sql_text(kind)}{' KEY' if name in keys else ''}" for name, kind in columns)


# ---- one statement, one entity


def current_status(text: str, command: str, message: str, sequence: int, query_id: str | None = None) -> Entity:
    status = {"status": "SUCCESS", "message": message, "queryId": query_id}
    return entity("currentStatus", text, commandId=command, commandStatus=status, commandSequenceNumber=sequence)


def source_list(text: str, kind: str, catalog: Catalog) -> Entity:
    found = [
        {
            "type": source.kind,
            "name": source.name,
            "topic": source.topic,
            "keyFormat": source.key_format.name,
            "valueFormat": source.value_format.name,
            "isWindowed": source.window is not None,
        }
        for source in sorted(catalog.sources.values(), key=lambda each: each.name)
        if source.kind == kind
    ]
    return entity("streams" if kind == "STREAM" else "tables", text, **{kind.lower() + "s": found})


def query_row(query: PersistentQuery, state: str) -> Entity:
    return {
        "queryString": query.statement,
        "sinks": [query.sink.name],
        "sinkKafkaTopics": [query.sink.topic],
        "id": query.id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": state,
    }


def query_list(text: str, rows: Sequence[Entity]) -> Entity:
    return entity("queries", text, queries=list(rows))


def description(source: DataSource, catalog: Catalog, states: Mapping[str, str]) -> Entity:
    reads = [catalog.queries[each] for each in catalog.readers(source.name)]
    writes = [catalog.queries[each] for each in catalog.writers(source.name)]
    return {
        "name": source.name,
        "windowType": None if source.window is None else source.window.kind,
        "readQueries": [query_row(each, states.get(each.id, "RUNNING")) for each in reads],
        "writeQueries": [query_row(each, states.get(each.id, "RUNNING")) for each in writes],
        "fields": fields_of(source),
        "type": source.kind,
        "timestamp": "" if source.event_time is None else source.event_time.column,
        "statistics": "",
        "errorStats": "",
        "extended": False,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "topic": source.topic,
        "partitions": source.partitions or 0,
        "replication": source.replicas or 0,
        "statement": source.statement,
        "queryOffsetSummaries": [],
        "sourceConstraints": [],
    }


def source_description(
    text: str, source: DataSource, catalog: Catalog, states: Mapping[str, str], more: Entity
) -> Entity:
    """`more`: what EXTENDED tells."""
    found = description(source, catalog, states) | {"extended": bool(more), **more}
    return entity("sourceDescription", text, sourceDescription=found)


def source_descriptions(
    text: str, kind: str, catalog: Catalog, states: Mapping[str, str], more: Mapping[str, Entity] | None = None
) -> Entity:
    """`more`: what EXTENDED tells of each."""
    known = more or {}
    found = [
        description(each, catalog, states) | {"extended": each.name in known, **known.get(each.name, {})}
        for each in catalog.sources.values()
        if each.kind == kind
    ]
    return entity("source_descriptions", text, sourceDescriptions=found)


def query_description(
    query: PersistentQuery, state: str, plan: str, topology: str, properties: Mapping[str, str]
) -> Entity:
    """Without an id: of a query that a client would have."""
    return {
        "id": query.id,
        "statementText": query.statement,
        "windowType": None if query.query.window is None else query.query.window.kind,
        "fields": fields_of(query.sink),
        "sources": list(query.reads),
        "sinks": [query.sink.name] if query.id else [],
        "topology": topology,
        "executionPlan": plan,
        "overriddenProperties": dict(properties),
        "ksqlHostQueryStatus": {},
        "queryType": "PERSISTENT" if query.id else "PUSH",
        "queryErrors": [],
        "tasksMetadata": [],
        "state": state,
    }


def function_names(text: str, own: Mapping[str, PythonFunction]) -> Entity:
    """`own`: those that statements made."""
    kinds: tuple[tuple[str, Iterable[str]], ...] = (
        ("SCALAR", SCALARS),
        ("AGGREGATE", AGGREGATES),
        ("TABLE", TABLE_FUNCTIONS),
    )
    found = [{"name": name, "category": "OTHER", "type": kind} for kind, table in kinds for name in table]
    found += [{"name": each.name, "category": "OTHER", "type": each.kind} for each in own.values()]
    return entity("function_names", text, functions=sorted(found, key=lambda each: each["name"]))


def function_description(text: str, function: Scalar | AggregateFunction | TableFunction) -> Entity:
    kind = {Scalar: "SCALAR", AggregateFunction: "AGGREGATE", TableFunction: "TABLE"}[type(function)]
    return entity(
        "describe_function",
        text,
        name=function.name,
        description=function.about,
        author="",
        version="",
        path="internal",
        functions=[_signature(each) for each in function.signatures],
        type=kind,
    )


def _signature(text: str) -> Entity:
    given, _, gives = text.partition("->")
    arguments = [
        {"name": "", "type": each.removesuffix("..."), "description": "", "isVariadic": each.endswith("...")}
        for each in split_types(given.replace("[", "").replace("]", ""))
    ]
    gives = gives.strip()
    return {"arguments": arguments, "returnType": gives, "description": ""}


def type_list(text: str, catalog: Catalog) -> Entity:
    return entity("type_list", text, types={name: schema_of(kind) for name, kind in catalog.types.items()})


def topics(text: str, found: Sequence[tuple[str, Sequence[int]]], *, extended: bool = False) -> Entity:
    """Who reads them is not counted: extended, both numbers are 0."""
    more: Entity = {"consumerCount": 0, "consumerGroupCount": 0} if extended else {}
    rows = [{"name": name, "replicaInfo": list(replicas), **more} for name, replicas in found]
    return entity("kafka_topics_extended" if extended else "kafka_topics", text, topics=rows)


def properties(text: str, defaults: Mapping[str, str], own: Mapping[str, str]) -> Entity:
    """All that a statement may have and that does something, with the value that it has now."""
    known = {name: _as_text(each.default) for name, each in KSQL.items()}
    listed = [
        {"name": name, "scope": "KSQL", "value": value, "editable": True, "level": "QUERY"}
        for name, value in sorted({**known, **defaults, **own}.items())
    ]
    return entity(
        "properties",
        text,
        properties=listed,
        overwrittenProperties=sorted(own),
        defaultProperties=sorted({*known, *defaults} - own.keys()),
    )


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def push_row(query_id: str, text: str) -> Entity:
    return {
        "queryString": text,
        "sinks": [],
        "sinkKafkaTopics": [],
        "id": query_id,
        "statusCount": {"RUNNING": 1},
        "queryType": "PUSH",
        "state": "RUNNING",
    }


def variables(text: str, found: Mapping[str, str]) -> Entity:
    listed = [{"name": name, "value": value} for name, value in sorted(found.items())]
    return entity("variables", text, variables=listed)
