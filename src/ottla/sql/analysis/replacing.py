"""CREATE OR REPLACE: what may change while offsets and state stay."""

from typing import TYPE_CHECKING

from ottla.sql import tree as t
from ottla.sql.analysis.refusals import refuse
from ottla.sql.analysis.typed import Joining, TypedQuery
from ottla.sql.model import Columns, DataSource

if TYPE_CHECKING:
    from ottla.sql.catalog import PersistentQuery


def check_source(there: DataSource, made: DataSource, node: t.Node) -> None:
    if there.query_id is not None:
        refuse(f"{there.name} is made by the query {there.query_id}: replace it by CREATE OR REPLACE ... AS", node)
    _check_shape(there, made, node)


def check_query(
    there: DataSource, before: "PersistentQuery | None", made: DataSource, query: TypedQuery, node: t.Node
) -> None:
    if there.query_id is None or before is None:
        refuse(f"{there.name} is not made by a query: replace it by CREATE OR REPLACE ... (columns)", node)
    _check_shape(there, made, node)
    if query.reads() != before.query.reads():
        refuse(f"{there.name} cannot be replaced by a query over other sources: DROP it first", node)
    for each in (before.query, query):
        stateful = "a join" if isinstance(each.source, Joining) else "GROUP BY" if each.grouping else None
        if stateful is not None and _kept(before.query) != _kept(query):
            refuse(f"{there.name} keeps state for {stateful}, which does not fit the new query: DROP it first", node)
    if query.key_changes != before.query.key_changes:
        refuse(f"{there.name} would get other keys: DROP it first", node)


def _kept(query: TypedQuery) -> str:
    """What its state is made of, as text: expressions have no equality of their own."""
    return repr((query.source, query.where, query.grouping))


def _check_shape(there: DataSource, made: DataSource, node: t.Node) -> None:
    if there.kind != made.kind:
        refuse(f"{there.name} is a {there.kind.lower()}, and stays one: DROP it first", node)
    if there.topic != made.topic:
        refuse(f"{there.name} reads the topic {there.topic}, and cannot be moved to {made.topic}: DROP it first", node)
    if there.keys != made.keys:
        refuse(f"the key of {there.name} cannot change: DROP it first", node)
    if (there.key_format, there.value_format) != (made.key_format, made.value_format):
        refuse(f"the formats of {there.name} cannot change: DROP it first", node)
    if there.window != made.window:
        refuse(f"the windows of {there.name} cannot change: DROP it first", node)
    _check_columns(there.name, there.values, made.values, node)


def _check_columns(name: str, before: Columns, after: Columns, node: t.Node) -> None:
    if after[: len(before)] != before:
        refuse(f"columns of {name} can be added at the end only; those that are there stay as they are", node)
