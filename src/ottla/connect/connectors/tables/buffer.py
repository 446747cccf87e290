"""What a micro-batch holds for each table until it is committed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.connect import spi
from ottla.connect.connectors.tables.config import TableConfig
from ottla.connect.connectors.tables.keys import Latest, key_of
from ottla.connect.connectors.tables.names import Misfit, Names, may_be_called
from ottla.connect.connectors.tables.quick_rows import quick_rows
from ottla.connect.connectors.tables.rows import rows_of
from ottla.connect.data.record import ConnectRecord


@dataclass(slots=True)
class Pending:
    """For one table: rows to write and keys to delete. Of each key only what came last."""

    rows: list[pa.Table] = field(default_factory=list)
    records: list[ConnectRecord] = field(default_factory=list)
    """Upserts wait as records until the end of the micro-batch: a later one may replace them."""
    places: list[int] = field(default_factory=list)

    def table(self) -> pa.Table | None:
        return pa.concat_tables(self.rows, promote_options="permissive") if self.rows else None


def insert(
    pending: Pending, places: Sequence[int], records: Sequence[ConnectRecord], known: pa.Schema | None, *, names: Names
) -> list[spi.Refused]:
    made = rows_of(records, _widened(known, pending.rows), names=names)
    if made.table.num_rows:
        pending.rows.append(made.table)
    return [spi.Refused(places[each.at], each.reason) for each in made.refused]


def insert_json(pending: Pending, values: pa.Array, known: pa.Schema | None, *, names: Names) -> None:
    """Raises OneByOne."""
    table = quick_rows(values, _widened(known, pending.rows))
    if table is None or not may_be_called(table.schema, names):
        raise spi.OneByOne
    pending.rows.append(table)


@dataclass(slots=True)
class Upserts:
    rows: pa.Table | None
    deleted: list[dict[str, Any]]
    refused: list[spi.Refused]
    keys: tuple[str, ...]


def upserts(pending: Pending, config: TableConfig, known: pa.Schema | None, *, names: Names) -> Upserts:
    refused: list[spi.Refused] = []
    keyed: list[tuple[int, ConnectRecord, dict[str, Any]]] = []
    for place, record in zip(pending.places, pending.records, strict=True):
        try:
            keyed.append((place, record, key_of(record, config.pk_mode, config.pk_fields)))
        except Misfit as misfit:
            refused.append(spi.Refused(place, str(misfit)))
    latest = Latest([key for _, _, key in keyed])
    while True:
        kept = [(at, *keyed[at]) for at in latest.places()]
        deleted = [key for _, _, record, key in kept if record.value is None and config.delete_enabled]
        written = [each for each in kept if each[2].value is not None or not config.delete_enabled]
        columns = _columns(config, [each[3] for each in written])
        made = rows_of([each[2] for each in written], known, columns, names=names)
        if not made.refused:
            break
        for bad in made.refused:
            at: int | None = written[bad.at][0]
            reason = bad.reason
            while at is not None:  # what it stood in the place of counts after all, if that is any better
                refused.append(spi.Refused(keyed[at][0], reason))
                at = latest.before(at)
                reason = _reason(config, keyed[at], made.table.schema, names) if at is not None else ""
                if not reason:
                    break
    key_columns = tuple(kept[0][3]) if kept else ()
    return Upserts(made.table if made.table.num_rows else None, deleted, refused, key_columns)


def _reason(
    config: TableConfig, keyed: tuple[int, ConnectRecord, dict[str, Any]], known: pa.Schema, names: Names
) -> str:
    """Why it does not fit; empty for one that does."""
    _, record, key = keyed
    if record.value is None and config.delete_enabled:
        return ""
    refused = rows_of([record], known, _columns(config, [key]), names=names).refused
    return refused[0].reason if refused else ""


def _columns(config: TableConfig, keys: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]] | None:
    return keys if config.pk_mode == "record_key" else None


def _widened(known: pa.Schema | None, rows: Sequence[pa.Table]) -> pa.Schema | None:
    """With what earlier parts of the micro-batch added."""
    schemas = [schema for schema in (known, *(table.schema for table in rows)) if schema is not None]
    return pa.unify_schemas(schemas, promote_options="permissive") if schemas else None
