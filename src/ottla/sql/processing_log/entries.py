"""An entry of the log, in ksqlDB's shape, and the stream over all of them."""

import base64
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from ottla.streams.record import Raw

DESERIALIZATION: Final = 0
RECORD: Final = 1
TOPIC: Final = "ksql_processing_log"
"""Behind the service's id."""
STREAM: Final = "KSQL_PROCESSING_LOG"
SOURCE_STEP: Final = "KsqlTopic.Source"
_COLUMNS: Final = (
    "LOGGER STRING, LEVEL STRING, TIME BIGINT, MESSAGE STRUCT<TYPE INT, "
    "DESERIALIZATIONERROR STRUCT<TARGET STRING, ERRORMESSAGE STRING, RECORDB64 STRING, CAUSE ARRAY<STRING>, "
    "`topic` STRING>, "
    "RECORDPROCESSINGERROR STRUCT<ERRORMESSAGE STRING, RECORD STRING, CAUSE ARRAY<STRING>>, "
    "PRODUCTIONERROR STRUCT<ERRORMESSAGE STRING>, "
    "SERIALIZATIONERROR STRUCT<TARGET STRING, ERRORMESSAGE STRING, RECORD STRING, CAUSE ARRAY<STRING>, "
    "`topic` STRING>, "
    "KAFKASTREAMSTHREADERROR STRUCT<ERRORMESSAGE STRING, THREADNAME STRING, CAUSE ARRAY<STRING>>>"
)
_KINDS: Final = {DESERIALIZATION: "deserializationError", RECORD: "recordProcessingError"}
_NO_MESSAGE: Final = dict.fromkeys(
    ("deserializationError", "recordProcessingError", "productionError", "serializationError")
) | {"kafkaStreamsThreadError": None}
_MOST_BYTES: Final = 1 << 16
"""Of a record that an entry shows."""


def stream_statement(name: str, topic: str) -> str:
    """What makes the log a stream."""
    return f"CREATE STREAM {name} ({_COLUMNS}) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');"


@dataclass(frozen=True, slots=True)
class Problem:
    """With one record, or (`raw` None) with several that nobody looked at."""

    kind: int
    step: str
    """Of the query, as ksqlDB names it."""
    message: str
    """Without anything that the record holds."""
    cause: str = ""
    """May tell what it holds."""
    target: str = ""
    """`key` or `value`, where it could not be read."""
    topic: str = ""
    raw: Raw | None = None
    shown: str | None = None
    """The record as JSON, where it could be read."""


def entry(query_id: str, problem: Problem, now_ms: int, *, rows: bool) -> bytes:
    """`rows`: with what the record holds."""
    document = {
        "level": "ERROR",
        "logger": f"processing.{query_id}.{problem.step}",
        "time": now_ms,
        "message": {"type": problem.kind, **_NO_MESSAGE, _KINDS[problem.kind]: _told(problem, rows=rows)},
    }
    return json.dumps(document).encode()


def _told(problem: Problem, *, rows: bool) -> dict[str, Any]:
    cause = problem.cause if rows else without_values(problem.cause)
    told: dict[str, Any] = {"errorMessage": problem.message, "cause": [cause] if cause else []}
    if problem.kind == RECORD:
        return {**told, "record": problem.shown if rows else None}
    return {**told, "target": problem.target, "recordB64": _bytes(problem) if rows else None, "topic": problem.topic}


def _bytes(problem: Problem) -> str | None:
    if problem.raw is None:
        return None
    data = problem.raw.key if problem.target == "key" else problem.raw.value
    return None if data is None else base64.b64encode(data[:_MOST_BYTES]).decode()


_FOUND: Final = re.compile(r"(; found |, found |; the value is |, not |, in b['\"]).*", re.S)
_QUOTED: Final = re.compile(r"b?'(?:[^'\\]|\\.)*'|b?\"(?:[^\"\\]|\\.)*\"")


def without_values(cause: str) -> str:
    """What serdes say of a record, without what they found in it."""
    return _QUOTED.sub("'...'", _FOUND.sub("", cause))
