"""Options of the source `ottla`: Spark's names for its own Kafka source, and a few that only this one has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ottla.client.addresses import parse_bootstrap
from ottla.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.reach import SECURED, Reach
from ottla.model.ids import TopicPartition
from ottla.model.patterns import compiled
from ottla.pipelines.source.offsets import EARLIEST, LATEST, Offsets, from_json

NAMES: Final = (
    "kafka.bootstrap.servers",
    "bootstrap.servers",
    "clientSettingsFile",
    "subscribe",
    "assign",
    "subscribePattern",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "targetMillisPerTrigger",
    "includeHeaders",
    "includeOrigin",
    "originBase",
    "omit",
    "failOnDataLoss",
    "isolationLevel",
    "kafka.isolation.level",
    "streamTime",
    "initialOffsetsFile",
    "brokerTimeoutMillis",
    "together",
    "waitMillis",
)
UNSUPPORTED: Final = {
    "minPartitions": "one Spark partition reads each topic partition",
    "maxRecordsPerPartition": "one Spark partition reads each topic partition",
    "minOffsetsPerTrigger": "use a trigger interval",
    "maxTriggerDelay": "use a trigger interval",
    "endingOffsetsByTimestamp": "use endingTimestamp",
}
"""Options of Spark's own source that would change what is read, so they are not passed over in silence."""

_CANONICAL: Final = {name.lower(): name for name in NAMES}
_ISOLATION: Final = {"read_committed": READ_COMMITTED, "read_uncommitted": READ_UNCOMMITTED}
CLIENT: Final = "kafka."
"""Stands before the names of Kafka's clients."""


class Topics(NamedTuple):
    """Which partitions: exactly one of the three is given."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def has(self, place: TopicPartition) -> bool:
        """Whether the partition is asked for, there or not."""
        if self.pattern is not None:
            return matching(self.pattern).fullmatch(place.topic) is not None
        return place in self.assigned if self.assigned else place.topic in self.names


class Position(NamedTuple):
    """Where to begin, or to end. `offset` is EARLIEST or LATEST unless another field says more."""

    offset: int = EARLIEST
    exactly: Offsets | None = None
    group: str | None = None
    timestamp: int | None = None
    timestamps: Offsets | None = None
    must_exist: bool = False
    """No record as new as the timestamp: an error, instead of the end of the log."""


class SourceOptions(NamedTuple):
    reach: Reach
    topics: Topics
    starting: Position | None
    """None: not given. A stream then begins with what is new, a batch with what is oldest."""
    ending: Position
    max_offsets: int | None
    max_bytes: int | None
    target_ms: int | None
    """A batch of a backlog takes as many records as are done in about this time; None: as many as there are."""
    headers: bool
    origin: bool
    """A column with the number of each record, see `origins`."""
    omitted: frozenset[str]
    """Columns that nobody will look at, `key` or `value`: all null, and never copied."""
    fail_on_data_loss: bool
    isolation: int
    stream_time: str | None
    """Directory of the carried stream times; the rows then have a column of it."""
    initial_offsets_file: str | None
    """Where a stream keeps what its first offsets were found to be. Spark asks again when the first batch is replayed,
    and what `latest` means has changed by then."""
    broker_timeout_ms: int | None = None
    """How long brokers that do not answer are waited for."""
    together: bool = False
    """Partitions of one number belong together: a batch takes them up to about the same time, and is told of which more
    lies at the brokers."""
    origin_base: int = 0
    """What numbers of records begin with: offsets up to which partitions were read that are not read any more."""
    wait_ms: int | None = None
    """How long a stream waits for records before it tells Spark that there are none. Spark's own way of asking again
    takes ten times as much of the processor."""


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """Raises ValueError with the name of the option that is wrong."""
    options = {_known(name): value.strip() for name, value in given.items() if not _passed_over(name, value)}
    bootstrap = options.get("kafka.bootstrap.servers") or options.get("bootstrap.servers")
    if not bootstrap:
        raise ValueError("kafka.bootstrap.servers is not set: which cluster is to be read?")
    parse_bootstrap(bootstrap)
    isolation = options.get("isolationLevel") or options.get("kafka.isolation.level") or "read_committed"
    if isolation not in _ISOLATION:
        raise ValueError(f"isolationLevel={isolation}: read_committed or read_uncommitted is expected")
    return SourceOptions(
        reach=Reach(bootstrap, options.get("clientSettingsFile", "")),
        topics=_topics(options),
        starting=_starting(options),
        ending=_ending(options),
        max_offsets=_positive(options, "maxOffsetsPerTrigger"),
        max_bytes=_positive(options, "maxBytesPerTrigger"),
        target_ms=_positive(options, "targetMillisPerTrigger"),
        headers=_flag(options, "includeHeaders", False),
        origin=_flag(options, "includeOrigin", False),
        omitted=_omitted(options.get("omit", "")),
        fail_on_data_loss=_flag(options, "failOnDataLoss", True),
        isolation=_ISOLATION[isolation],
        stream_time=options.get("streamTime"),
        initial_offsets_file=options.get("initialOffsetsFile"),
        broker_timeout_ms=_positive(options, "brokerTimeoutMillis"),
        together=_flag(options, "together", False),
        origin_base=_number(options, "originBase") if "originBase" in options else 0,
        wait_ms=_positive(options, "waitMillis"),
    )


def _known(name: str) -> str:
    canonical = _CANONICAL.get(name.lower())
    if canonical is not None:
        return canonical
    for unsupported, instead in UNSUPPORTED.items():
        if name.lower() == unsupported.lower():
            raise ValueError(f"{unsupported} is not an option of this source: {instead}")
    near = get_close_matches(name.lower(), _CANONICAL, n=1)
    hint = f"; is {_CANONICAL[near[0]]} meant?" if near else f"; there are {', '.join(NAMES)}"
    raise ValueError(f"{name} is not an option of this source{hint}")


def _passed_over(name: str, value: str) -> bool:
    """Settings of Java's consumer tune what is not there. Secrets do not belong here: Spark shows a query's options."""
    lower = name.lower()
    if is_secured(name) and (lower != "kafka.security.protocol" or value.strip().upper() != "PLAINTEXT"):
        raise ValueError(
            f"{lower}: options of a query are shown in Spark's pages; give it to ottla.pipelines.read_stream, which "
            "keeps it to itself, or name a properties file by clientSettingsFile"
        )
    return lower.startswith(CLIENT) and lower not in _CANONICAL


def is_secured(name: str) -> bool:
    """Whether the option says how the brokers' door is opened."""
    return name.lower().removeprefix(CLIENT).startswith(SECURED) and name.lower().startswith(CLIENT)


@lru_cache(maxsize=256)
def matching(pattern: str) -> Any:
    """RE2's, whose time grows with the text alone, wherever it knows the pattern; Python's, for what looks around: who
    takes patterns from others judges those before. Raises re.error."""
    try:
        return compiled(pattern)
    except ValueError:
        return re.compile(pattern)


def _topics(options: Mapping[str, str]) -> Topics:
    given = [name for name in ("subscribe", "assign", "subscribePattern") if options.get(name)]
    if len(given) != 1:
        what = " and ".join(given) or "none of them"
        raise ValueError(f"one of subscribe, assign and subscribePattern has to be set, not {what}")
    value = options[given[0]]
    if given[0] == "subscribe":
        return Topics(names=tuple(dict.fromkeys(name for part in value.split(",") if (name := part.strip()))))
    if given[0] == "assign":
        return Topics(assigned=_assigned(value))
    try:
        matching(value)
    except re.error as error:
        raise ValueError(f"subscribePattern={value} is no regular expression: {error}") from error
    return Topics(pattern=value)


def _assigned(value: str) -> tuple[TopicPartition, ...]:
    import json  # noqa: PLC0415

    try:
        return tuple(
            sorted(TopicPartition(topic, int(each)) for topic, parts in json.loads(value).items() for each in parts)
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f'assign={value}: {{"topic": [0, 1]}} is expected') from error


def _starting(options: Mapping[str, str]) -> Position | None:
    strategy = options.get("startingOffsetsByTimestampStrategy", "error")
    if strategy not in ("error", "latest"):
        raise ValueError(f"startingOffsetsByTimestampStrategy={strategy}: error or latest is expected")
    must_exist = strategy == "error"
    # Spark's order: the one timestamp, the timestamps, the offsets.
    if "startingTimestamp" in options:
        return Position(timestamp=_number(options, "startingTimestamp"), must_exist=must_exist)
    if "startingOffsetsByTimestamp" in options:
        return Position(timestamps=from_json(options["startingOffsetsByTimestamp"]), must_exist=must_exist)
    text = options.get("startingOffsets")
    if text is None:
        return None
    if text.startswith("group:"):
        group = text.removeprefix("group:").strip()
        if not group:
            raise ValueError("startingOffsets=group: names no group")
        return Position(group=group)
    return _position("startingOffsets", text)


def _ending(options: Mapping[str, str]) -> Position:
    if "endingTimestamp" in options:
        return Position(timestamp=_number(options, "endingTimestamp"))
    ending = _position("endingOffsets", options.get("endingOffsets", "latest"))
    if ending == Position(EARLIEST) or (ending.exactly and EARLIEST in ending.exactly.values()):
        raise ValueError("endingOffsets cannot be the earliest: nothing would be read")
    return ending


def _position(name: str, text: str) -> Position:
    if text.lower() == "earliest":
        return Position(EARLIEST)
    if text.lower() == "latest":
        return Position(LATEST)
    if text.startswith("timestamp:"):
        return Position(timestamp=_number({name: text.removeprefix("timestamp:")}, name))
    if not text.startswith("{"):
        raise ValueError(f"{name}={text}: earliest, latest, timestamp:MS or offsets in JSON are expected")
    return Position(exactly=from_json(text))


def _number(options: Mapping[str, str], name: str) -> int:
    try:
        return int(options[name])
    except ValueError:
        raise ValueError(f"{name}={options[name]}: a whole number is expected") from None


def _omitted(text: str) -> frozenset[str]:
    found = frozenset(name for part in text.split(",") if (name := part.strip()))
    if not found <= {"key", "value"}:
        raise ValueError(f"omit={text}: key, value or both are expected")
    return found


def _positive(options: Mapping[str, str], name: str) -> int | None:
    if name not in options:
        return None
    number = _number(options, name)
    if number < 1:
        raise ValueError(f"{name}={number}: a number above 0 is expected")
    return number


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}={text}: true or false is expected")
    return text == "true"
