"""A table as its records have it: which columns, under which schemas, and its rows as Structs or as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ottla.connect import spi
from ottla.connect.connectors.postgresql.catalog import ColumnFacts, TableFacts, TableName
from ottla.connect.connectors.postgresql.columns import WRITERS, Kind, json_writer, kind_of
from ottla.connect.connectors.postgresql.config import PostgresConfig, Values
from ottla.connect.connectors.postgresql.defaults import default_of
from ottla.connect.connectors.postgresql.pgoutput import Text, Unchanged
from ottla.connect.converters.json_texts import quoted
from ottla.connect.data.schema import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, Schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Type
from ottla.connect.transforms.patterns import Pattern, compiled

SNAPSHOT: Final = Schema(
    Type.STRING,
    optional=True,
    default="false",
    name="io.debezium.data.Enum",
    version=1,
    parameters={"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},
)
SOURCE: Final = struct_schema(
    {
        "version": STRING, "connector": STRING, "name": STRING, "ts_ms": INT64, "snapshot": SNAPSHOT, "db": STRING,
        "sequence": OPTIONAL_STRING, "ts_us": OPTIONAL_INT64, "ts_ns": OPTIONAL_INT64, "schema": STRING,
        "table": STRING, "txId": OPTIONAL_INT64, "lsn": OPTIONAL_INT64, "xmin": OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
    version=1,
)  # fmt: skip
BLOCK: Final = struct_schema(
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64}, name="event.block", version=1, optional=True
)
_TOPIC: Final = re.compile(r"[^A-Za-z0-9._-]")


class Patterns:
    """Lists of patterns over names, as Debezium's: whole names, any case."""

    __slots__ = ("_exclude", "_include")

    def __init__(self, key: str, include: Sequence[str], exclude: Sequence[str]) -> None:
        """Raises ConfigRefused."""
        if include and exclude:
            raise spi.ConfigRefused(f"{key}.include.list", f"cannot be used together with {key}.exclude.list")
        self._include = [_pattern(f"{key}.include.list", each) for each in include]
        self._exclude = [_pattern(f"{key}.exclude.list", each) for each in exclude]

    def take(self, name: str) -> bool:
        if self._include:
            return any(each.fullmatch(name) for each in self._include)
        return not any(each.fullmatch(name) for each in self._exclude)


def _pattern(key: str, text: str) -> Pattern:
    try:
        return compiled(f"(?i){text}")
    except ValueError as error:
        raise spi.ConfigRefused(key, f"{text!r} is no pattern: {error}") from error


class Capture:
    """Which tables and columns are captured, and what their keys are."""

    __slots__ = ("_columns", "_first", "_keys", "_schemas", "_tables", "config")

    def __init__(self, config: PostgresConfig) -> None:
        """Raises ConfigRefused."""
        self.config = config
        self._schemas = Patterns("schema", config.schema_include_list, config.schema_exclude_list)
        self._tables = Patterns("table", config.table_include_list, config.table_exclude_list)
        self._columns = Patterns("column", config.column_include_list, config.column_exclude_list)
        self._first = Patterns("snapshot", config.snapshot_include_collection_list, ())
        self._keys: list[tuple[Pattern, tuple[str, ...]]] = []
        for part in filter(None, map(str.strip, config.message_key_columns.split(";"))):
            tables, _, names = part.rpartition(":")
            if not tables or not names:
                raise spi.ConfigRefused("message.key.columns", f"{part!r} is not SCHEMA.TABLE:COLUMN,COLUMN")
            self._keys.append(
                (_pattern("message.key.columns", tables), tuple(name.strip() for name in names.split(",")))
            )

    def table(self, schema: str, name: str) -> bool:
        return self._schemas.take(schema) and self._tables.take(f"{schema}.{name}")

    def is_loaded(self, schema: str, name: str) -> bool:
        """Whether the table is read first."""
        return self._first.take(f"{schema}.{name}")

    def column(self, table: str, name: str) -> bool:
        return self._columns.take(f"{table}.{name}")

    def key_of(self, table: str) -> tuple[str, ...] | None:
        """None: its primary key."""
        return next((names for pattern, names in self._keys if pattern.fullmatch(table)), None)

    def chosen(self, tables: Sequence[TableName]) -> list[TableName]:
        """Partitions, or the tables that they belong to."""
        root = self.config.publish_via_partition_root
        return [
            each
            for each in tables
            if self.table(each.schema, each.name) and (not each.is_partition if root else not each.is_partitioned)
        ]


class Column(NamedTuple):
    name: str
    place: int
    """In a row of the log."""
    schema: Schema
    read: Callable[[str], Any]
    when_null: Any
    """What stands for null."""
    write: Callable[[str], str]
    null_json: str
    placeholder: Any
    placeholder_json: str

    def value(self, text: Text) -> Any:
        if text is None:
            return self.when_null
        return self.placeholder if isinstance(text, Unchanged) else self.read(text)

    def json(self, text: Text) -> str:
        if text is None:
            return self.null_json
        return self.placeholder_json if isinstance(text, Unchanged) else self.write(text)


def _column(facts: ColumnFacts, index: int, kind: Kind, values: Values) -> Column:
    default = default_of(facts.default, facts.type, kind)
    schema = kind.schema.but(optional=not facts.required, default=default)
    when_null = None
    if facts.required:
        when_null = kind.zero if default is None else default
    placeholder = values.unavailable_value_placeholder if kind.placeholder is None else kind.placeholder
    write = WRITERS.of(schema)
    null_json = write(when_null) if when_null is not None or not facts.required else "null"
    placeholder_json = write(placeholder) if kind.placeholder is not None else quoted(placeholder)
    return Column(
        facts.name, index, schema, kind.read, when_null, json_writer(kind), null_json, placeholder, placeholder_json
    )


class Table:
    """As it was described at one time."""

    __slots__ = (
        "_keys",
        "_parts",
        "columns",
        "envelope",
        "key_names",
        "key_places",
        "key_schema",
        "name",
        "row_schema",
        "schema",
        "topic",
    )

    def __init__(self, facts: TableFacts, order: Sequence[str], capture: Capture) -> None:
        """`order`: the columns, as rows of the log have them."""
        values = capture.config
        full = f"{facts.schema}.{facts.name}"
        self.schema, self.name = facts.schema, facts.name
        bare = self.topic = _TOPIC.sub("_", f"{values.topic_prefix}.{full}")
        given = capture.key_of(full)
        self.key_names = facts.key if given is None else given
        known: list[Column] = []
        for index, name in enumerate(order):
            kind = kind_of(facts.columns[name].type, values)
            if kind is not None:
                known.append(_column(facts.columns[name], index, kind, values))
        self.columns = tuple(each for each in known if capture.column(full, each.name))
        by_name = {each.name: each for each in known}
        self._keys = tuple(by_name[name] for name in self.key_names if name in by_name)
        places = {name: index for index, name in enumerate(order)}
        self.key_places = tuple(places[name] for name in facts.key if name in places)
        """Of the primary key, in a row."""
        self.row_schema = struct_schema(
            [(each.name, each.schema) for each in self.columns], name=f"{bare}.Value", optional=True
        )
        self.key_schema = (
            struct_schema([(each.name, each.schema) for each in self._keys], name=f"{bare}.Key") if self._keys else None
        )
        self.envelope = struct_schema(
            {
                "before": self.row_schema, "after": self.row_schema, "source": SOURCE, "transaction": BLOCK,
                "op": STRING, "ts_ms": OPTIONAL_INT64, "ts_us": OPTIONAL_INT64, "ts_ns": OPTIONAL_INT64,
            },
            name=f"{bare}.Envelope",
            version=2,
        )  # fmt: skip
        self._parts = tuple(
            (f"{'{' if not number else ','}{quoted(each.name)}:", each.place, each.write, each.null_json,
             each.placeholder_json)
            for number, each in enumerate(self.columns)
        )  # fmt: skip

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    def row(self, texts: Sequence[Text]) -> Struct:
        return Struct.of(self.row_schema, [column.value(texts[column.place]) for column in self.columns])

    def key(self, texts: Sequence[Text]) -> Struct | None:
        if self.key_schema is None:
            return None
        return Struct.of(self.key_schema, [column.value(texts[column.place]) for column in self._keys])

    def row_json(self, texts: Sequence[Text]) -> str:
        out = []
        for name, index, write, null, placeholder in self._parts:
            text = texts[index]
            if text is None:
                out.append(name + null)
            elif isinstance(text, Unchanged):
                out.append(name + placeholder)
            else:
                out.append(name + write(text))
        return "".join(out) + "}" if out else "{}"

    def key_json(self, texts: Sequence[Text]) -> str | None:
        if self.key_schema is None:
            return None
        return "{" + ",".join(f"{quoted(each.name)}:{each.json(texts[each.place])}" for each in self._keys) + "}"

    def key_texts(self, texts: Sequence[Text]) -> tuple[Text, ...]:
        """What tells a row from the others; all of it if there is no key."""
        return tuple(texts[place] for place in self.key_places) if self.key_places else tuple(texts)

    def is_same_key(self, one: Sequence[Text], other: Sequence[Text]) -> bool:
        return all(one[each.place] == other[each.place] for each in self._keys)
