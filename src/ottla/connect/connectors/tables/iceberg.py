"""Sink into Iceberg tables by pyiceberg: rows, new columns and offsets are one commit of the catalog.

Offsets are properties of the table, set in the commit that adds the rows; a catalog takes one of two commits that
began at the same state, so a task that was slower finds the other's offsets and tries again.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import pyarrow as pa
from msgspec import Meta
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.expressions import And, BooleanExpression, EqualTo, Or, Reference
from pyiceberg.table import Table, Transaction

from ottla.connect import spi
from ottla.connect.connectors.tables.config import TableConfig
from ottla.connect.connectors.tables.names import Names
from ottla.connect.connectors.tables.sink import TableSink

_OFFSETS: Final = "ottla.offsets."
_TRIES: Final = 20
_PYICEBERGS_OWN_TRIES: Final = "commit.retry.num-retries"


class IcebergConfig(TableConfig, kw_only=True):
    iceberg_catalog_uri: Annotated[
        str, Meta(min_length=1, description="The catalog: a REST address, or sqlite:///… and the like for SQL.")
    ]
    iceberg_catalog: Annotated[str, Meta(description="The catalog's name; one by SQL keeps tables under it.")] = (
        "iceberg"
    )
    iceberg_catalog_type: Annotated[str, Meta(description="rest or sql; else as the address says.")] = ""
    iceberg_catalog_warehouse: Annotated[str, Meta(description="Where the catalog lays new tables.")] = ""
    iceberg_catalog_token: Annotated[spi.Secret, Meta(description="For a REST catalog.")] = ""
    iceberg_tables: Annotated[
        str, Meta(description="namespace.table, with ${topic} for the topic; dots in a topic become _.")
    ] = "default.${topic}"
    compaction_commits: Annotated[
        int, Meta(ge=0, description="Only 0: files of Iceberg tables are put together by the catalog's own tools.")
    ] = 0

    def check(self) -> None:
        super().check()
        if self.compaction_commits:
            raise spi.ConfigRefused(
                "compaction.commits",
                "is for Delta: pyiceberg cannot put files together. Leave it out, and let rewrite_data_files of Spark "
                "or Trino do it",
            )


class IcebergSink(TableSink[IcebergConfig]):
    names = Names(empty=False)

    def __init__(self, config: IcebergConfig, name: str) -> None:
        super().__init__(config, name)
        self._catalog: Catalog | None = None
        self._tables: dict[str, Table | None] = {}

    def begin(self, spans: Sequence[spi.Span]) -> None:
        self._tables.clear()  # others commit to them too
        super().begin(spans)

    def written_until(self, span: spi.Span) -> int:
        table = self._table(span.topic)
        return 0 if table is None else int(table.properties.get(self._property(span), "0"))

    def columns(self, topic: str) -> pa.Schema | None:
        table = self._table(topic)
        return None if table is None else table.schema().as_arrow()

    def append(self, topic: str, rows: pa.Table, spans: Sequence[spi.Span]) -> None:
        self._committed(topic, rows, spans, lambda change: change.append(self._fitted(change, rows)))

    def upsert(
        self,
        topic: str,
        rows: pa.Table | None,
        deleted: Sequence[dict[str, Any]],
        keys: Sequence[str],
        spans: Sequence[spi.Span],
    ) -> None:
        def change_rows(change: Transaction) -> None:
            if deleted:
                change.delete(_any_of(deleted))
            if rows is not None:
                change.upsert(self._fitted(change, rows), join_cols=list(keys))

        if rows is None and self._table(topic) is None:
            return
        self._committed(topic, rows, spans, change_rows)

    def _committed(
        self, topic: str, rows: pa.Table | None, spans: Sequence[spi.Span], change_rows: Callable[[Transaction], None]
    ) -> None:
        for _ in range(_TRIES):
            self.require_unwritten(spans)
            table = self._table(topic)
            if table is None:
                assert rows is not None
                table = self._made(topic, rows)
            # Only here, not in the catalog: pyiceberg would put the same rows behind those of another who has committed
            # meanwhile, perhaps these.
            table.metadata.properties[_PYICEBERGS_OWN_TRIES] = "0"
            try:
                with table.transaction() as change:
                    if rows is not None and self.config.auto_evolve:
                        with change.update_schema() as schema:
                            schema.union_by_name(rows.schema)
                    change_rows(change)
                    change.set_properties({self._property(span): str(span.end) for span in spans})
            except CommitFailedException as error:
                self._tables.pop(topic, None)
                reason = str(error)
                continue
            self._tables.pop(topic, None)
            return
        raise spi.TryAgain(f"other writers were faster {_TRIES} times: {reason}")

    def _fitted(self, change: Transaction, rows: pa.Table) -> pa.Table:
        """With every column of the table, in its order and type."""
        wanted = change.table_metadata.schema().as_arrow()
        if missing := [name for name in rows.column_names if name not in wanted.names]:
            raise spi.ConnectorFailed(
                f"The table lacks {', '.join(missing)}, and auto.evolve=false: add the columns, or set auto.evolve=true"
            )
        columns = [
            rows.column(field.name).cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in wanted
        ]
        return pa.table(columns, schema=wanted)

    def _made(self, topic: str, rows: pa.Table) -> Table:
        if not self.config.auto_create:
            raise spi.ConnectorFailed(f"{self._name(topic)} is not in the catalog, and auto.create=false")
        catalog = self._opened()
        name = self._name(topic)
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(name.rpartition(".")[0])
        made = catalog.create_table_if_not_exists(name, rows.schema)
        if self.config.partition_fields and made.spec().is_unpartitioned():
            with made.update_spec() as spec:
                for field in self.config.partition_fields:
                    spec.add_identity(field)
        return made

    def _table(self, topic: str) -> Table | None:
        if topic not in self._tables:
            try:
                self._tables[topic] = self._opened().load_table(self._name(topic))
            except NoSuchTableError:
                self._tables[topic] = None
        return self._tables[topic]

    def _name(self, topic: str) -> str:
        return self.config.iceberg_tables.replace("${topic}", topic.replace(".", "_"))

    def _property(self, span: spi.Span) -> str:
        return _OFFSETS + self.application(span)

    def _opened(self) -> Catalog:
        if self._catalog is None:
            config = self.config
            given = {
                "uri": config.iceberg_catalog_uri,
                "type": config.iceberg_catalog_type,
                "warehouse": config.iceberg_catalog_warehouse,
                "token": config.iceberg_catalog_token,
                "s3.endpoint": config.store_url,
                "s3.region": config.s3_region if config.store_url or config.aws_access_key_id else "",
                "s3.access-key-id": config.aws_access_key_id,
                "s3.secret-access-key": config.aws_secret_access_key,
            }
            self._catalog = load_catalog(
                config.iceberg_catalog, **{name: value for name, value in given.items() if value}
            )
        return self._catalog


def _any_of(keys: Sequence[dict[str, Any]]) -> BooleanExpression:
    each = [_equal(key) for key in keys]
    return each[0] if len(each) == 1 else Or(*each)


def _equal(key: dict[str, Any]) -> BooleanExpression:
    parts = [EqualTo(term=Reference(name), value=value) for name, value in key.items()]
    return parts[0] if len(parts) == 1 else And(*parts)
