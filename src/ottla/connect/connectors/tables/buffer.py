"""What a micro-batch holds for each table until it is committed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.connect import spi
from ottla.connect.connectors.tables.config import TableConfig
from ottla.connect.connectors.tables.keys import key_of, last_of_each
from ottla.connect.connectors.tables.rows import Misfit, rows_of
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
    pending: Pending, places: Sequence[int], records: Sequence[ConnectRecord], known: pa.Schema | None
) -> list[spi.Refused]:
    made = rows_of(records, _widened(known, pending.rows))
    if made.table.num_rows:
        pending.rows.append(made.table)
    return [spi.Refused(places[each.at], each.reason) for each in made.refused]


@dataclass(slots=True)
class Upserts:
    rows: pa.Table | None
    deleted: list[dict[str, Any]]
    refused: list[spi.Refused]
    keys: tuple[str, ...]


def upserts(pending: Pending, config: TableConfig, known: pa.Schema | None) -> Upserts:
    refused: list[spi.Refused] = []
    keyed: list[tuple[int, ConnectRecord, dict[str, Any]]] = []
    for place, record in zip(pending.places, pending.records, strict=True):
        try:
            keyed.append((place, record, key_of(record, config.pk_mode, config.pk_fields)))
        except Misfit as misfit:
            refused.append(spi.Refused(place, str(misfit)))
    kept = [keyed[at] for at in last_of_each([key for _, _, key in keyed])]
    deleted = [key for _, record, key in kept if record.value is None and config.delete_enabled]
    written = [each for each in kept if each[1].value is not None or not config.delete_enabled]
    made = rows_of([record for _, record, _ in written], known, _columns(config, [key for _, _, key in written]))
    refused += [spi.Refused(written[each.at][0], each.reason) for each in made.refused]
    names = tuple(kept[0][2]) if kept else ()
    return Upserts(made.table if made.table.num_rows else None, deleted, refused, names)


def _columns(config: TableConfig, keys: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]] | None:
    return keys if config.pk_mode == "record_key" else None


def _widened(known: pa.Schema | None, rows: Sequence[pa.Table]) -> pa.Schema | None:
    """With what earlier parts of the micro-batch added."""
    schemas = [schema for schema in (known, *(table.schema for table in rows)) if schema is not None]
    return pa.unify_schemas(schemas, promote_options="permissive") if schemas else None
