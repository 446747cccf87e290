"""ALTER … ADD COLUMN: more columns for what was made by CREATE without AS."""

from collections.abc import Mapping
from dataclasses import replace

from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.analysis.refusals import at, refuse
from ottla.sql.analysis.types import resolved
from ottla.sql.formats import check
from ottla.sql.model import SYSTEM, DataSource


def altered(source: DataSource, statement: t.AlterSource, custom: Mapping[str, Type]) -> DataSource:
    if source.kind != statement.kind:
        refuse(f"{source.name} is a {source.kind.lower()}: ALTER {source.kind} {source.name}", statement)
    if source.query_id is not None:
        refuse(
            f"{source.name} is made by the query {source.query_id}: CREATE OR REPLACE it with another query", statement
        )
    if source.is_source:
        refuse(f"{source.name} is a SOURCE {source.kind}, which is read-only", statement)
    known = {name for name, _ in source.all_columns()}
    added: list[tuple[str, Type]] = []
    for column in statement.columns:
        if column.name in SYSTEM or column.name in known:
            refuse(f"{source.name} has a column {column.name} already", column)
        known.add(column.name)
        added.append((column.name, resolved(column.type, custom)))
        with at(column):
            check(source.value_format, (*source.values, *added), "value")
    return replace(source, values=(*source.values, *added))
