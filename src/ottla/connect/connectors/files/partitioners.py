"""Into which folder a record goes. `Wallclock` is not among the times that can be had twice: records that come again go
where they went only if no folder began in between, so such files are noted before they are written (`notes`)."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesConfig
from ottla.connect.data.date_format import DateFormat
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant

Partitioner: TypeAlias = Callable[[ConnectRecord, int], str]
"""A record and the time of day, in milliseconds, to a folder. Raises BadRecord."""

_HOURLY: Final = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
_DAILY: Final = "'year'=YYYY/'month'=MM/'day'=dd"
_UNSAFE: Final = re.compile(r"[\x00-\x1f/\\]")
_DAY_MS: Final = 86_400_000


def partitioner_of(config: FilesConfig) -> Partitioner:
    """Raises ConfigRefused."""
    name = config.partitioner_class.rpartition(".")[2]
    if name == "DefaultPartitioner":
        return by_partition
    if name == "FieldPartitioner":
        return _by_fields(config)
    formats = {"TimeBasedPartitioner": config.path_format, "HourlyPartitioner": _HOURLY, "DailyPartitioner": _DAILY}
    if name not in formats:
        raise spi.ConfigRefused("partitioner.class", f"{name} is none of Default-, Field-, {', '.join(formats)}")
    if not formats[name]:
        raise spi.ConfigRefused("path.format", "is missing: the folders, as 'year'=YYYY/'month'=MM/'day'=dd")
    return _by_time(config, formats[name])


def by_partition(record: "ConnectRecord | spi.Columns", _: int) -> str:
    return f"partition={record.partition}"


def goes_by_clock(config: FilesConfig) -> bool:
    """Whether a record that comes again may go into another folder."""
    is_time = config.partitioner_class.rpartition(".")[2] not in ("DefaultPartitioner", "FieldPartitioner")
    return is_time and config.timestamp_extractor == "Wallclock"


def _by_fields(config: FilesConfig) -> Partitioner:
    if not config.partition_field_name:
        raise spi.ConfigRefused("partition.field.name", "is missing: the fields that FieldPartitioner looks at")

    def folder(record: ConnectRecord, _: int) -> str:
        return "/".join(f"{name}={_safe(_field(record, name))}" for name in config.partition_field_name)

    return folder


def _by_time(config: FilesConfig, path_format: str) -> Partitioner:
    try:
        # Joda's Y is the year of the era, which SimpleDateFormat calls y.
        written = DateFormat(_outside_quotes(path_format))
        zone = ZoneInfo(config.timezone)
    except ValueError as error:
        raise spi.ConfigRefused("path.format", str(error)) from error
    except ZoneInfoNotFoundError as error:
        raise spi.ConfigRefused("timezone", f"{config.timezone} is not known") from error
    duration = config.partition_duration_ms

    def folder(record: ConnectRecord, now_ms: int) -> str:
        time_ms = _time_of(config, record, now_ms)
        try:
            moment = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(zone)
        except (OverflowError, ValueError, OSError):
            raise spi.BadRecord(f"its time, {time_ms} ms, is outside of the years 1 to 9999") from None
        offset = moment.utcoffset()
        assert offset is not None
        local_ms = time_ms + int(offset.total_seconds() * 1000)
        return written.format(local_ms - local_ms % duration if duration > 0 else local_ms)

    return folder


def _time_of(config: FilesConfig, record: ConnectRecord, now_ms: int) -> int:
    if config.timestamp_extractor == "Wallclock":
        return now_ms
    if config.timestamp_extractor == "Record":
        if record.timestamp is None:
            raise spi.BadRecord("it has no time")
        return record.timestamp
    value = _field(record, config.timestamp_field)
    if isinstance(value, Instant | int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        try:
            return int(datetime.fromisoformat(value).timestamp() * 1000)
        except ValueError:
            pass
    raise spi.BadRecord(f"its field {config.timestamp_field} is no time: milliseconds or ISO 8601 are")


def _field(record: ConnectRecord, path: str) -> Any:
    value = record.value
    for name in path.split("."):
        if isinstance(value, Struct) and value.schema.field(name) is not None:
            value = value.get(name)
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            raise spi.BadRecord(f"it has no field {path}")
    if value is None or isinstance(value, Struct | dict | list):
        raise spi.BadRecord(f"its field {path} is no single value")
    return value


def _safe(value: Any) -> str:
    """A folder's name: whatever a record says, it stays inside of the topic's folder."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    cleaned = _UNSAFE.sub("_", text)
    return "_" if cleaned in ("", ".", "..") else cleaned[:200]


def _outside_quotes(pattern: str) -> str:
    parts = pattern.split("'")
    return "'".join(part.replace("Y", "y") if at % 2 == 0 else part for at, part in enumerate(parts))
