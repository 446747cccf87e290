"""Columns that nobody declared: taken from the schemas of the topic, before the statement is decided on.

What is found is written into the statement, so that a log of statements is replayed without asking a registry.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.sql import tree as t
from ottla.sql.analysis import properties
from ottla.sql.analysis.formats import Defaults, of_part
from ottla.sql.analysis.refusals import refuse
from ottla.sql.formats import FORMATS, inferred
from ottla.sql.functions.declare import Refused
from ottla.sql.parser import parse_type
from ottla.sql.types import sql_text

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry


def with_columns(statement: t.CreateSource, registry: "Registry | None", defaults: Defaults) -> t.CreateSource:
    """The statement with the columns of those sides that have none and whose format knows them."""
    said = properties.read(statement.properties, properties.CREATE, statement)
    topic = said.text("KAFKA_TOPIC")
    if topic is None:
        return statement
    keys = [column for column in statement.columns if column.role.endswith("KEY")]
    values = [column for column in statement.columns if not column.role]
    found: list[t.ColumnDef] = []
    for part, declared, default in (("key", keys, defaults.key), ("value", values, defaults.value)):
        name = said.upper(f"{part.upper()}_FORMAT") or said.upper("FORMAT") or default
        if declared or name not in FORMATS or FORMATS[name].inferred is None:
            continue
        format = of_part(said, part.upper(), name, None, statement)
        try:
            columns = inferred(format, topic, part, registry)
        except Refused as refused:
            refuse(str(refused), statement)
        role = "" if part == "value" else "PRIMARY KEY" if statement.kind == "TABLE" else "KEY"
        found += [t.ColumnDef(column, parse_type(sql_text(kind)), role, at=statement.at) for column, kind in columns]
    return replace(statement, columns=(*found, *statement.columns)) if found else statement
