"""The keys, by Debezium's names."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from ottla.connect import spi

MODES: Final = {"never": "no_data", "schema_only": "no_data"}
"""Former names of snapshot modes."""
SnapshotMode = Literal["initial", "initial_only", "no_data", "when_needed", "never", "schema_only"]
PLACEHOLDER: Final = "__debezium_unavailable_value"


def said(text: str) -> Any:
    return msgspec.Meta(description=text)


class Connection(spi.Config, kw_only=True):
    database_hostname: Annotated[str, said("Where the server is.")] = "localhost"
    database_port: Annotated[int, msgspec.Meta(ge=1, le=65535, description="Its port.")] = 5432
    database_user: Annotated[str, said("Who connects: a role with LOGIN and REPLICATION.")] = "postgres"
    database_password: Annotated[spi.Secret, said("With which password.")] = ""
    database_dbname: Annotated[str, said("The database whose changes are read.")]
    database_sslmode: Annotated[
        Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"], said("Whether by TLS.")
    ] = "prefer"
    database_sslcert: Annotated[str, said("A file with the client's certificate.")] = ""
    database_sslkey: Annotated[str, said("A file with its key.")] = ""
    database_sslpassword: Annotated[spi.Secret, said("The password of that file.")] = ""
    database_sslrootcert: Annotated[str, said("A file with the certificates to trust.")] = ""


class Captured(Connection, kw_only=True):
    """What is read, and where it goes."""

    topic_prefix: Annotated[
        str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]+$", description="Topics are PREFIX.SCHEMA.TABLE.")
    ]
    plugin_name: Annotated[Literal["pgoutput"], said("The plugin of the slot.")] = "pgoutput"
    slot_name: Annotated[
        str, msgspec.Meta(pattern="^[a-z0-9_]{1,63}$", description="The replication slot; made if it is not there.")
    ] = "debezium"
    slot_drop_on_stop: Annotated[Literal["false"], said("Slots stay until they are dropped by hand.")] = "false"
    publication_name: Annotated[str, said("The publication; made if it is not there.")] = "dbz_publication"
    publication_autocreate_mode: Annotated[
        Literal["all_tables", "disabled", "filtered", "no_tables"],
        said("How it is made: for all tables, not at all, for the tables that are captured, or for none."),
    ] = "all_tables"
    publish_via_partition_root: Annotated[
        bool, said("Whether changes of partitions are told as those of the table they belong to.")
    ] = False
    schema_include_list: Annotated[tuple[str, ...], said("Patterns of schemas to read; none: all.")] = ()
    schema_exclude_list: Annotated[tuple[str, ...], said("Patterns of schemas not to read.")] = ()
    table_include_list: Annotated[tuple[str, ...], said("Patterns of SCHEMA.TABLE to read; none: all.")] = ()
    table_exclude_list: Annotated[tuple[str, ...], said("Patterns of SCHEMA.TABLE not to read.")] = ()
    column_include_list: Annotated[tuple[str, ...], said("Patterns of SCHEMA.TABLE.COLUMN to read; none: all.")] = ()
    column_exclude_list: Annotated[tuple[str, ...], said("Patterns of SCHEMA.TABLE.COLUMN not to read.")] = ()
    message_key_columns: Annotated[
        str, said("Which columns make the key: SCHEMA.TABLE:COLUMN,COLUMN;SCHEMA.TABLE:COLUMN.")
    ] = ""
    skipped_operations: Annotated[tuple[str, ...], said("Which changes are left out: c, u, d, t, or none of them.")] = (
        "t",
    )
    tombstones_on_delete: Annotated[bool, said("Whether a delete is followed by a record of null.")] = True


class Values(Captured, kw_only=True):
    """How values are written."""

    decimal_handling_mode: Annotated[Literal["precise", "double", "string"], said("What NUMERIC and MONEY become.")] = (
        "precise"
    )
    time_precision_mode: Annotated[
        Literal["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"],
        said("What dates and times become."),
    ] = "adaptive"
    binary_handling_mode: Annotated[
        Literal["bytes", "base64", "base64-url-safe", "hex"], said("What BYTEA becomes.")
    ] = "bytes"
    interval_handling_mode: Annotated[Literal["numeric", "string"], said("What INTERVAL becomes.")] = "numeric"
    hstore_handling_mode: Annotated[Literal["json", "map"], said("What HSTORE becomes.")] = "json"
    money_fraction_digits: Annotated[int, msgspec.Meta(ge=0, le=18, description="Digits behind the point.")] = 2
    include_unknown_datatypes: Annotated[
        bool, said("Whether columns of other types are written, as the text that the server gives; else left out.")
    ] = False
    unavailable_value_placeholder: Annotated[
        str, said("Stands for a large value that an update has left as it was.")
    ] = PLACEHOLDER
    provide_transaction_metadata: Annotated[
        bool, said("Whether changes name their transaction, and its begin and end go to PREFIX.transaction.")
    ] = False


_WHOLE: Final = "columns are published as they are: leave them out by column.exclude.list, or mask them by MaskField"
_REFUSED: Final = (
    spi.Foreign("column.mask.*", f"is not there, and {_WHOLE}"),
    spi.Foreign("column.truncate.*", f"is not there, and {_WHOLE}"),
    spi.Foreign("snapshot.select.statement.overrides*", "is not there: tables are read whole; a transform may filter"),
    spi.Foreign("snapshot.query.mode", "is not there: tables are read whole", ("select_all",)),
    spi.Foreign("skip.messages.without.change", "is not there: a change of other columns is told too", ("false",)),
    spi.Foreign("schema.name.adjustment.mode", "is not there: schemas are called as tables are", ("none",)),
    spi.Foreign("field.name.adjustment.mode", "is not there: fields are called as columns are", ("none",)),
    spi.Foreign("converters", "is Java code: a transform of yours may change values"),
    spi.Foreign("post.processors", "is Java code: a transform of yours may change values"),
    spi.Foreign(
        "topic.naming.strategy",
        "is Java code: topics are PREFIX.SCHEMA.TABLE; RegexRouter gives them other names",
        ("io.debezium.schema.SchemaTopicNamingStrategy", "io.debezium.schema.DefaultTopicNamingStrategy"),
    ),
    spi.Foreign("topic.delimiter", "is always a dot: RegexRouter gives topics other names", (".",)),
    spi.Foreign("topic.transaction", "is always transaction: RegexRouter gives it another name", ("transaction",)),
)
"""Of Debezium's."""


class PostgresConfig(Values, kw_only=True):
    REFUSED: ClassVar[tuple[spi.Foreign, ...]] = _REFUSED
    snapshot_mode: Annotated[
        SnapshotMode,
        said(
            "initial: tables are read first; initial_only: and nothing else; no_data: changes only; when_needed: also "
            "if the slot is gone, or has lost what is missing."
        ),
    ] = "initial"
    snapshot_include_collection_list: Annotated[
        tuple[str, ...], said("Patterns of those tables that are read first; none: all.")
    ] = ()
    signal_data_collection: Annotated[str, said("DATABASE.SCHEMA.TABLE or SCHEMA.TABLE that signals are put in.")] = ""
    incremental_snapshot_chunk_size: Annotated[
        int, msgspec.Meta(ge=1, le=1_000_000, description="Rows that are read at a time between changes.")
    ] = 1024
    heartbeat_interval_ms: Annotated[
        int, msgspec.Meta(ge=0, description="How often a heartbeat is written; 0: never.")
    ] = 0
    heartbeat_action_query: Annotated[str, said("A statement that is run with each heartbeat.")] = ""
    topic_heartbeat_prefix: Annotated[str, said("Heartbeats go to the topic THIS.PREFIX.")] = "__debezium-heartbeat"
    poll_interval_ms: Annotated[int, msgspec.Meta(ge=1, description="How often it is looked for changes.")] = 500
    slot_lag_alert_bytes: Annotated[
        int, msgspec.Meta(ge=0, description="A warning is logged if the slot holds more WAL than this; 0: never.")
    ] = 1 << 30
    slot_advance_interval_ms: Annotated[
        int, msgspec.Meta(ge=100, description="How often the slot follows the server while there are no changes.")
    ] = 10_000
    slot_advance_bytes: Annotated[
        int, msgspec.Meta(ge=1, description="It follows at once if so much WAL came without changes.")
    ] = 16 << 20
    transaction_batch_changes: Annotated[
        int, msgspec.Meta(ge=1000, description="About so many changes are decoded by the server in one go.")
    ] = 200_000

    @property
    def mode(self) -> str:
        return MODES.get(self.snapshot_mode, self.snapshot_mode)

    @property
    def signal_table(self) -> str:
        """SCHEMA.TABLE, or nothing."""
        return ".".join(self.signal_data_collection.split(".")[-2:]) if self.signal_data_collection else ""
