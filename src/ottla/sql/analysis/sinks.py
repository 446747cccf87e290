"""Where CREATE … AS SELECT writes: topic, formats and columns of the result."""

from ottla.sql import tree as t
from ottla.sql.analysis import properties
from ottla.sql.analysis.formats import Defaults, formats
from ottla.sql.analysis.keeping import topic_settings
from ottla.sql.analysis.refusals import refuse
from ottla.sql.analysis.sources import event_time
from ottla.sql.analysis.typed import TypedQuery
from ottla.sql.model import DataSource


def sink_of(statement: t.CreateAs, query: TypedQuery, defaults: Defaults, prefix: str) -> DataSource:
    if statement.kind == "TABLE" and not query.is_table:
        refuse(f"the query gives a stream: write CREATE STREAM {statement.name} AS ..., or add GROUP BY", statement)
    if statement.kind == "STREAM" and query.is_table:
        refuse(f"the query gives a table: write CREATE TABLE {statement.name} AS ...", statement)
    said = properties.read(statement.properties, properties.CREATE_AS, statement)
    origin = query.reads()[0]
    for name, kind in query.keys:
        if kind.has("map"):
            refuse(f"a key cannot hold a MAP, whose entries have no order: {name}", statement)
    key_format, value_format = formats(said, query.keys, query.columns, statement, origin, defaults)
    retention_ms = None if query.grouping is None else query.grouping.retention_ms
    return DataSource(
        statement.name,
        statement.kind,
        said.text("KAFKA_TOPIC") or f"{prefix}{statement.name}",
        query.keys,
        query.columns,
        key_format,
        value_format,
        (),
        query.window,
        event_time(said, (*query.keys, *query.columns), statement),
        said.number("PARTITIONS") or origin.partitions,
        said.number("REPLICAS") or origin.replicas,
        topic_settings=topic_settings(said, statement, windowed=query.window is not None, retention_ms=retention_ms),
    )
