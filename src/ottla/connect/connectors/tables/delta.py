"""Sink into Delta tables by delta-rs: a commit for each micro-batch of a task, with the offsets that it ends at."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from msgspec import Meta

from ottla.connect import spi
from ottla.connect.connectors.tables.config import TableConfig
from ottla.connect.connectors.tables.names import Names
from ottla.connect.connectors.tables.sink import TableSink

_RETRIES: Final = 50
"""Other tasks commit to the same table: whoever comes second tries again."""


class DeltaConfig(TableConfig, kw_only=True):
    table_uri: Annotated[
        str, Meta(min_length=1, description="Where tables are: a folder or s3://…; ${topic} stands for the topic.")
    ]


class DeltaSink(TableSink[DeltaConfig]):
    names = Names(folds=True)

    def __init__(self, config: DeltaConfig, name: str) -> None:
        super().__init__(config, name)
        self._tables: dict[str, DeltaTable | None] = {}

    def begin(self, spans: Sequence[spi.Span]) -> None:
        self._tables.clear()  # others commit to them too
        super().begin(spans)

    def written_until(self, span: spi.Span) -> int:
        table = self._table(span.topic)
        version = None if table is None else table.transaction_version(self.application(span))
        return version or 0

    def columns(self, topic: str) -> pa.Schema | None:
        table = self._table(topic)
        return None if table is None else pa.schema(table.schema().to_arrow())

    def append(self, topic: str, rows: pa.Table, spans: Sequence[spi.Span]) -> None:
        if self._table(topic) is None:
            del self._tables[topic]  # another task may have made it
        self.require_unwritten(spans)
        table = self._table(topic)
        if table is None and not self.config.auto_create:
            raise spi.ConnectorFailed(f"{self._uri(topic)} is no Delta table, and auto.create=false")
        before = _version(table)
        try:
            # As it was when its offsets were looked at: Delta refuses the commit if another has set them since.
            write_deltalake(
                self._uri(topic) if table is None else table,
                rows,
                mode="append",
                schema_mode="merge" if self.config.auto_evolve else None,
                partition_by=list(self.config.partition_fields) or None,
                storage_options=self._storage() if table is None else None,
                commit_properties=self._properties(spans),
            )
        except CommitFailedError as error:
            raise spi.TryAgain(f"another writer was faster: {error}") from error
        finally:
            self._tables.pop(topic, None)
        self._tidy(topic, before)

    def upsert(
        self,
        topic: str,
        rows: pa.Table | None,
        deleted: Sequence[dict[str, Any]],
        keys: Sequence[str],
        spans: Sequence[spi.Span],
    ) -> None:
        self.require_unwritten(spans)
        table = self._table(topic)
        before = _version(table)
        if deleted and table is not None:
            # Before the rows, and without the offsets where there are some: deleting again changes nothing.
            properties = None if rows is not None else self._properties(spans)
            table.delete(" OR ".join(_equal(key) for key in deleted), commit_properties=properties)
        if rows is None:
            return
        if table is None:
            self.append(topic, rows, spans)
        else:
            self._merge(topic, table, rows, keys, spans)
            self._tidy(topic, before)

    def _merge(
        self, topic: str, table: DeltaTable, rows: pa.Table, keys: Sequence[str], spans: Sequence[spi.Span]
    ) -> None:
        merger = table.merge(
            rows,
            " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in keys),
            source_alias="s",
            target_alias="t",
            merge_schema=self.config.auto_evolve,
            commit_properties=self._properties(spans),
        )
        try:
            merger.when_matched_update_all().when_not_matched_insert_all().execute()
        except CommitFailedError as error:
            raise spi.TryAgain(f"another writer was faster: {error}") from error
        finally:
            self._tables.pop(topic, None)

    def _tidy(self, topic: str, before: int) -> None:
        """Where another so many commits are full since the version `before`."""
        every = self.config.compaction_commits
        table = self._table(topic)
        if not every or table is None:
            return
        if (_version(table) + 1) // every > (before + 1) // every:
            with suppress(CommitFailedError):  # somebody has just written: the next ones are not far
                table.optimize.compact()
            self._tables.pop(topic, None)

    def _properties(self, spans: Sequence[spi.Span]) -> CommitProperties:
        ends = [Transaction(self.application(span), span.end) for span in spans]
        return CommitProperties(max_commit_retries=_RETRIES, app_transactions=ends)

    def _table(self, topic: str) -> DeltaTable | None:
        if topic not in self._tables:
            try:
                self._tables[topic] = DeltaTable(self._uri(topic), storage_options=self._storage())
            except TableNotFoundError:
                self._tables[topic] = None
        return self._tables[topic]

    def _uri(self, topic: str) -> str:
        uri = self.config.table_uri
        return uri.replace("${topic}", topic) if "${topic}" in uri else f"{uri.rstrip('/')}/{topic}"

    def _storage(self) -> dict[str, str]:
        if not self.config.table_uri.startswith(("s3://", "s3a://")):
            return {}
        given = {
            "AWS_REGION": self.config.s3_region,
            "AWS_ENDPOINT_URL": self.config.store_url,
            "AWS_ACCESS_KEY_ID": self.config.aws_access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.config.aws_secret_access_key,
            # The store itself refuses a second commit of one version: no table of locks is needed.
            "AWS_CONDITIONAL_PUT": "etag",
        }
        if self.config.store_url.startswith("http://"):
            given["AWS_ALLOW_HTTP"] = "true"
        return {name: value for name, value in given.items() if value}


def _version(table: DeltaTable | None) -> int:
    return -1 if table is None else table.version()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _equal(key: dict[str, Any]) -> str:
    return "(" + " AND ".join(f"{_quoted(name)} = {_literal(value)}" for name, value in key.items()) + ")"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    raise spi.BadRecord(f"a key of {type(value).__name__} cannot be deleted by: use text or numbers")
