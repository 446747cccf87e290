"""The keys of both connectors, by the names that Confluent, Aiven and Debezium have for them."""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from ottla.connect import spi


def said(text: str) -> Any:
    return msgspec.Meta(description=text)


_UTC: Final = ("UTC", "Z", "GMT", "Etc/UTC")
_ZONE: Final = "is not there: times without a zone are UTC"
_SOURCE_REFUSED: Final = (
    spi.Foreign("db.timezone", _ZONE, _UTC),
    spi.Foreign("schema.pattern", "is not there: the tables of the user's own schema are read, or those of a query"),
    spi.Foreign("catalog.pattern", "is not there: the tables of the database in connection.url are read"),
    spi.Foreign("table.types", "is not there: tables are read, and views by a query", ("TABLE",)),
    spi.Foreign("query.suffix", "is not there: it may stand in the query itself"),
    spi.Foreign("timestamp.initial", "is not there: the first read is from the beginning; a query may leave rows out"),
    spi.Foreign("timestamp.granularity", "is not there: times are Connect's", ("connect_logical",)),
    spi.Foreign("numeric.precision.mapping", "is not there: numeric.mapping=precision_only says it", ("false",)),
)
_NAMED_IN_JAVA: Final = "is Java code: table.name.format says how tables are called, ReplaceField how columns are"
_SINK_REFUSED: Final = (
    spi.Foreign("db.timezone", _ZONE, _UTC),
    spi.Foreign("use.time.zone", _ZONE, _UTC),
    spi.Foreign("table.types", "is not there: rows are written into tables", ("TABLE",)),
    spi.Foreign("table.name.normalize", "is not there: table.name.format says how tables are called", ("false",)),
    spi.Foreign("topics.to.tables.mapping", "is not there: RegexRouter says how tables are called"),
    spi.Foreign("truncate.enabled", "is not there: rows are deleted one by one, by delete.enabled", ("false",)),
    *(
        spi.Foreign(
            f"{kind}.naming.strategy", _NAMED_IN_JAVA, (f"io.debezium.sink.naming.Default{kind}NamingStrategy",)
        )
        for kind in ("column", "collection", "table")
    ),
)
"""Of Confluent's, Aiven's and Debezium's, by which other rows or values would be written."""


class Connection(spi.Config, kw_only=True):
    connection_url: Annotated[str, said("Where the database is: jdbc:postgresql://host:port/name, or another.")]
    connection_user: Annotated[str, said("Who connects.")] = ""
    connection_username: Annotated[str, said("Debezium's name of connection.user.")] = ""
    connection_password: Annotated[spi.Secret, said("With which password.")] = ""

    @property
    def user(self) -> str:
        return self.connection_user or self.connection_username


InsertMode = Literal["insert", "upsert", "update"]
KeyMode = Literal["none", "kafka", "record_key", "record_value"]


class SinkConfig(Connection, kw_only=True):
    REFUSED: ClassVar[tuple[spi.Foreign, ...]] = _SINK_REFUSED

    insert_mode: Annotated[InsertMode, said("insert; upsert: by the key; update: only rows that are there.")] = "insert"
    pk_mode: Annotated[
        KeyMode,
        said(
            "What the key columns are: none; kafka: topic, partition and offset; fields of the record's key or value."
        ),
    ] = "none"
    primary_key_mode: Annotated[KeyMode | None, said("Debezium's name of pk.mode.")] = None
    pk_fields: Annotated[tuple[str, ...], said("The fields, or the names of the columns, that make the key.")] = ()
    primary_key_fields: Annotated[tuple[str, ...], said("Debezium's name of pk.fields.")] = ()
    delete_enabled: Annotated[bool, said("Whether a null value deletes the row of its key.")] = False
    auto_create: Annotated[bool, said("Whether a missing table is made.")] = False
    auto_evolve: Annotated[bool, said("Whether missing columns are added.")] = False
    schema_evolution: Annotated[
        Literal["none", "basic"], said("Debezium's name: basic is auto.create and auto.evolve.")
    ] = "none"
    table_name_format: Annotated[str, said("The table, in which ${topic} is the topic.")] = "${topic}"
    collection_name_format: Annotated[str, said("Debezium's name of table.name.format.")] = ""
    fields_whitelist: Annotated[tuple[str, ...], said("The fields to write, besides those of the key; none: all.")] = ()
    field_include_list: Annotated[tuple[str, ...], said("Debezium's name of fields.whitelist.")] = ()
    batch_size: Annotated[int, msgspec.Meta(ge=1, description="At most so many rows in one statement.")] = 50_000

    @property
    def key_mode(self) -> KeyMode:
        return self.primary_key_mode or self.pk_mode

    @property
    def key_fields(self) -> tuple[str, ...]:
        return self.pk_fields or self.primary_key_fields

    @property
    def fields(self) -> tuple[str, ...]:
        return self.fields_whitelist or self.field_include_list

    @property
    def makes_tables(self) -> bool:
        return self.auto_create or self.schema_evolution == "basic"

    @property
    def adds_columns(self) -> bool:
        return self.auto_evolve or self.schema_evolution == "basic"

    def table_of(self, topic: str) -> str:
        named = self.collection_name_format or self.table_name_format
        return named.replace("${topic}", topic.replace(".", "_") if self.collection_name_format else topic)


class SourceConfig(Connection, kw_only=True):
    REFUSED: ClassVar[tuple[spi.Foreign, ...]] = _SOURCE_REFUSED

    mode: Annotated[
        Literal["bulk", "incrementing", "timestamp", "timestamp+incrementing"],
        said("How new rows are known: bulk reads all of it each time."),
    ] = "bulk"
    incrementing_column_name: Annotated[str, said("The column whose values only grow.")] = ""
    timestamp_column_name: Annotated[
        tuple[str, ...], said("Columns with the time of the last change; the first not null.")
    ] = ()
    table_whitelist: Annotated[tuple[str, ...], said("The tables to read; none: all.")] = ()
    table_include_list: Annotated[tuple[str, ...], said("Another name of table.whitelist.")] = ()
    table_blacklist: Annotated[tuple[str, ...], said("The tables not to read.")] = ()
    query: Annotated[str, said("A SELECT in place of tables.")] = ""
    topic_prefix: Annotated[str, said("What stands before a table's name in its topic; of a query, the topic.")]
    poll_interval_ms: Annotated[int, msgspec.Meta(ge=0, description="How long to wait when nothing is new.")] = 5000
    batch_max_rows: Annotated[int, msgspec.Meta(ge=1, description="At most so many rows at a time.")] = 10_000
    timestamp_delay_interval_ms: Annotated[
        int, msgspec.Meta(ge=0, description="Rows younger than this are left for later, so that late commits are seen.")
    ] = 0
    timestamp_look_back_ms: Annotated[
        int,
        msgspec.Meta(ge=0, description="How far below the last time is looked again, for rows committed late; 0: not."),
    ] = 0
    snapshot_safe: Annotated[
        bool,
        said(
            "PostgreSQL: rows are read by the transactions that wrote them, so that none is missed whatever its number "
            "or time. Each poll looks at the whole table."
        ),
    ] = False
    incrementing_look_back: Annotated[
        int,
        msgspec.Meta(
            ge=0, description="How many numbers below the last one are looked at again, for rows committed late."
        ),
    ] = 1000
    numeric_mapping: Annotated[
        Literal["none", "best_fit", "precision_only"], said("What NUMERIC becomes: Decimal, or a number that fits.")
    ] = "none"
