"""Converters and transforms of one connector, with a verdict for each record: a record, nothing, or a letter.

Made anew in each process from the config. `is_raw` says that bytes pass as they are, so whoever can deals in columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from ottla.connect.catalogue import catalogue
from ottla.connect.chain import Chain as TransformChain
from ottla.connect.converters.base import RECORDS_FAULT, Converter, Role, fault_of
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.errors import ConnectException, RecordTooLargeException
from ottla.connect.data.record import NOTHING, ConnectRecord, Header, SchemaAndValue
from ottla.connect.data.struct import Struct
from ottla.connect.dead_letters import Failure, Letter, RawHeader, Stage, as_bytes
from ottla.connect.definitions import ConfigError
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.plugins import PluginType
from ottla.connect.spi import Columns, ConfigRefused, JsonForm, Partition, Row, Table, Unreadable

_RAW: Final = ("StringConverter", "ByteArrayConverter")
_HEADER_DEFAULT: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_STAGES: Final = {"key": Stage.KEY_CONVERTER, "value": Stage.VALUE_CONVERTER, "header": Stage.HEADER_CONVERTER}


class RawIn(NamedTuple):
    """A record as it lies in its topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[RawHeader] = ()

    def letter(self, failure: Failure) -> Letter:
        return Letter(
            self.key, self.value, self.headers, self.timestamp, self.topic, self.partition, self.offset, failure
        )


class Inbound(NamedTuple):
    """Records of a topic on their way to a sink. `origin` of each is its RawIn."""

    records: list[ConnectRecord]
    letters: list[Letter]
    skipped: int


class Outbound(NamedTuple):
    """Rows of a source on their way to topics."""

    records: list[RawRecord]
    letters: list[Letter]
    skipped: int


def _never(_: RawRecord) -> str:
    return ""


class Chain:
    """Of one connector."""

    __slots__ = (
        "_class_name",
        "_header",
        "_key",
        "_key_is_plain",
        "_secrets",
        "_transforms",
        "_value",
        "is_raw",
        "json_form",
    )

    def __init__(self, spec: JobSpec) -> None:
        """Raises ConfigRefused."""
        self._class_name = spec.config.get("connector.class") or ""
        self._secrets = spec.secrets
        self._key = _converter(spec, "key")
        self._value = _converter(spec, "value")
        self._header = _converter(spec, "header")
        self._transforms = _transforms(spec)
        self._key_is_plain = _is_raw(spec, "key")
        self.is_raw = not spec.config.get("transforms") and all(_is_raw(spec, side) for side in ("key", "value"))
        """Bytes pass as they are."""
        self.json_form = _json_form(spec, self._key, self._value)
        """Whoever can writes JSON at once; None: the converters are others, or there are transforms."""

    # Towards a sink.

    @property
    def reads_json(self) -> bool:
        """Whether values are JSON without schemas, and nothing is made of them but what they say."""
        value = self._value
        return not self._transforms.stages and type(value) is JsonConverter and not value.has_schemas

    def is_json(self, columns: Columns) -> bool:
        """Whether only the values of these records can be no good."""
        if columns.headers is not None and len(columns.headers.flatten()):
            return False
        if self._key_is_plain or (type(self._key) is JsonConverter and columns.keys.null_count == len(columns.keys)):
            return True
        keys = self._key.to_connect(columns.topic, columns.keys.to_pylist())
        return not any(isinstance(key, ConnectException) for key in keys)

    def inbound(self, columns: Columns) -> Inbound:
        """A letter has the bytes as they were."""
        raws = raw_records(columns)
        headers = None if columns.headers is None else [raw.headers for raw in raws]
        keys = self._key.to_connect(columns.topic, [raw.key for raw in raws], headers)
        values = self._value.to_connect(columns.topic, [raw.value for raw in raws], headers)
        made: list[ConnectRecord] = []
        letters: list[Letter] = []
        for raw, key, value in zip(raws, keys, values, strict=True):
            record = self._record(raw, key, value)
            if isinstance(record, ConnectRecord):
                made.append(record)
            else:
                letters.append(raw.letter(record))
        records, failed, skipped = self._transformed(made)
        letters += [_origin(record).letter(failure) for record, failure in failed]
        return Inbound(records, letters, skipped)

    def _transformed(
        self, made: list[ConnectRecord]
    ) -> tuple[list[ConnectRecord], list[tuple[ConnectRecord, Failure]], int]:
        """Those that are left, those that failed, and how many were left out."""
        if not self._transforms.stages:
            return made, [], 0
        records: list[ConnectRecord] = []
        failed: list[tuple[ConnectRecord, Failure]] = []
        for before, after in zip(made, self._transforms.run(made), strict=True):
            if isinstance(after, ConnectRecord):
                records.append(after)
            elif after is not None:
                told = Failure.of(Stage.TRANSFORMATION, after.class_name, after.error, self._secrets)
                failed.append((before, told))
        return records, failed, len(made) - len(records) - len(failed)

    def _record(
        self, raw: RawIn, key: SchemaAndValue | ConnectException, value: SchemaAndValue | ConnectException
    ) -> ConnectRecord | Failure:
        if isinstance(key, ConnectException):
            return self._failure(self._key, key)
        if isinstance(value, ConnectException):
            return self._failure(self._value, value)
        headers: tuple[Header, ...] = ()
        if raw.headers:
            try:
                headers = tuple(
                    Header(name, *self._header.read_header(raw.topic, name, data)) for name, data in raw.headers
                )
            except (ConnectException, *RECORDS_FAULT) as error:
                return self._failure(self._header, fault_of(error))
        return ConnectRecord(
            raw.topic, raw.partition, key.schema, key.value, value.schema, value.value, raw.timestamp, headers,
            raw.offset, raw,
        )  # fmt: skip

    def refused(self, raw: object, error: Exception | str) -> Letter:
        """Of a record that the sink did not take."""
        assert isinstance(raw, RawIn)
        return raw.letter(Failure.of(Stage.TASK_PUT, self._class_name, error, self._secrets))

    # Out of a source.

    def outbound(
        self, rows: Sequence[Row], partition: Partition, too_large: Callable[[RawRecord], str] = _never
    ) -> Outbound:
        """`too_large`: why a record's topic will not take it, if it will not."""
        letters: list[Letter] = []
        now_ms = time.time_ns() // 1_000_000
        read: list[ConnectRecord] = []
        for row in rows:
            if isinstance(row.value, Unreadable):
                letters.append(self._unreadable(row, row.value, partition))
            else:
                read.append(_connect_record(row, now_ms))
        kept, failed, skipped = self._transformed(read)
        for record, failure in failed:
            assert isinstance(record.origin, Row)
            letters.append(_source_letter(record.origin, partition, failure))
        records: list[RawRecord] = []
        for topic, these in _by_topic(kept).items():
            told = [self._raw_headers(each) for each in these]
            headers = [each if isinstance(each, list) else [] for each in told]
            keys = self._key.from_connect(topic, [SchemaAndValue(each.key_schema, each.key) for each in these], headers)
            values = self._value.from_connect(
                topic, [SchemaAndValue(each.value_schema, each.value) for each in these], headers
            )
            for record, key, value, header in zip(these, keys, values, told, strict=True):
                made = self._raw(record, key, value, header)
                if isinstance(made, RawRecord) and (reason := too_large(made)):
                    made = self._unsent(reason)
                if isinstance(made, RawRecord):
                    records.append(made)
                else:
                    assert isinstance(record.origin, Row)
                    letters.append(_source_letter(record.origin, partition, made))
        return Outbound(records, letters, skipped)

    def judged(
        self, records: Sequence[RawRecord], partition: Partition, too_large: Callable[[RawRecord], str]
    ) -> Outbound:
        """Of a source that has converted its records itself."""
        kept: list[RawRecord] = []
        letters: list[Letter] = []
        for record in records:
            if reason := too_large(record):
                row = Row(record.topic, record.value, record.key, timestamp=record.timestamp)
                letters.append(_source_letter(row, partition, self._unsent(reason)))
            else:
                kept.append(record)
        return Outbound(kept, letters, 0)

    def _unsent(self, reason: str) -> Failure:
        return Failure.of(Stage.KAFKA_PRODUCE, self._class_name, RecordTooLargeException(reason), self._secrets)

    def _unreadable(self, row: Row, found: Unreadable, partition: Partition) -> Letter:
        failure = Failure.of(Stage.TASK_POLL, self._class_name, found.reason, self._secrets)
        return _source_letter(row._replace(value=found.data), partition, failure)

    def column(self, table: Table) -> pa.ChunkedArray | None:
        """The values of all records, if they can be had without making any of them."""
        if self._transforms.stages or self._key.from_connect(table.topic, [NOTHING]) != [None]:
            return None
        try:
            return self._value.from_columns(table.topic, table.schema, table.values)
        except ConnectException:
            return None  # one by one it is found which

    def _raw_headers(self, record: ConnectRecord) -> list[RawHeader] | Failure:
        """First of all, as in Java: converters may put a schema's id among them."""
        headers: list[RawHeader] = []
        try:
            for name, schema, given in record.headers:
                headers.append((name, self._header.write_header(record.topic, name, SchemaAndValue(schema, given))))
        except (ConnectException, *RECORDS_FAULT) as error:
            return self._failure(self._header, fault_of(error))
        return headers

    def _raw(
        self,
        record: ConnectRecord,
        key: bytes | ConnectException | None,
        value: bytes | ConnectException | None,
        headers: list[RawHeader] | Failure,
    ) -> RawRecord | Failure:
        if isinstance(headers, Failure):
            return headers
        if isinstance(key, ConnectException):
            return self._failure(self._key, key)
        if isinstance(value, ConnectException):
            return self._failure(self._value, value)
        return RawRecord(key, value, record.topic, record.partition, record.timestamp, headers)

    def _failure(self, converter: Converter, error: ConnectException) -> Failure:
        return Failure.of(_STAGES[converter.role], java_name(converter), error, self._secrets)


def raw_records(columns: Columns) -> list[RawIn]:
    count = len(columns.offsets)
    headers: Sequence[Any] = [None] * count if columns.headers is None else columns.headers.to_pylist()
    topic, partition = columns.topic, columns.partition
    return [
        RawIn(topic, partition, offset, key, value, timestamp, [(h["key"], h["value"]) for h in told] if told else ())
        for key, value, offset, timestamp, told in zip(
            columns.keys.to_pylist(),
            columns.values.to_pylist(),
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            headers,
            strict=True,
        )
    ]


def _origin(record: ConnectRecord) -> RawIn:
    assert isinstance(record.origin, RawIn)
    return record.origin


def _connect_record(row: Row, now_ms: int) -> ConnectRecord:
    value_schema = row.value.schema if isinstance(row.value, Struct) else row.value_schema
    key_schema = row.key.schema if isinstance(row.key, Struct) else row.key_schema
    return ConnectRecord(
        row.topic,
        row.partition,
        key_schema,
        row.key,
        value_schema,
        row.value,
        now_ms if row.timestamp is None else row.timestamp,
        tuple(Header(name, value.schema if isinstance(value, Struct) else None, value) for name, value in row.headers),
        None,
        row,
    )


def _by_topic(records: Sequence[ConnectRecord]) -> dict[str, list[ConnectRecord]]:
    found: dict[str, list[ConnectRecord]] = {}
    for record in records:
        found.setdefault(record.topic, []).append(record)
    return found


def _source_letter(row: Row, partition: Partition, failure: Failure) -> Letter:
    told = msgspec.json.encode(dict(partition)).decode()
    headers = [(name, as_bytes(value)) for name, value in row.headers]
    return Letter(
        as_bytes(row.key), as_bytes(row.value), headers, row.timestamp, row.topic, row.partition, None, failure, told
    )


def _transforms(spec: JobSpec) -> TransformChain:
    try:
        return TransformChain.of(spec.config, spec.plugins())
    except (ConfigError, ImportError, AttributeError) as error:
        raise ConfigRefused("transforms", str(error)) from error


def _converter(spec: JobSpec, role: Role) -> Converter:
    """The connector's own, else the worker's. Raises ConfigRefused."""
    name = f"{role}.converter"
    kind = PluginType.HEADER_CONVERTER if role == "header" else PluginType.CONVERTER
    wanted = spec.setting(name) or (_HEADER_DEFAULT if role == "header" else "JsonConverter")
    plugins = spec.plugins()
    row = plugins.find(wanted, kind)
    if row is None:
        raise ConfigRefused(name, f"{wanted} is no converter here.{plugins.why_not(wanted, kind)}")
    try:
        made: Any = row.load()
        found: Converter = made(spec.with_prefix(f"{name}."), role)
    except (ConfigError, ImportError, AttributeError) as error:
        raise ConfigRefused(name, str(error)) from error
    return found


def java_name(plugin: object) -> str:
    """What dead letters call it."""
    location = f"{type(plugin).__module__}:{type(plugin).__qualname__}"
    row = next((each for each in catalogue().rows if each.location == location), None)
    return location if row is None else row.class_name


def _json_form(spec: JobSpec, key: Converter, value: Converter) -> JsonForm | None:
    if spec.config.get("transforms") or type(key) is not JsonConverter or type(value) is not JsonConverter:
        return None
    if not (key.is_usual and value.is_usual):
        return None
    return JsonForm(key.has_schemas, value.has_schemas)


def _is_raw(spec: JobSpec, side: str) -> bool:
    name = (spec.setting(f"{side}.converter") or "").rpartition(".")[2]
    encoding = spec.with_prefix(f"{side}.converter.").get("converter.encoding", "UTF-8")
    return name in _RAW and encoding.upper().replace("-", "") == "UTF8"
