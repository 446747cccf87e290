"""A record that could not be converted, transformed or written: what is said of it, and how it lies in its topic.

The record keeps its key and value bytes; what happened stands in headers with Connect's names, behind its own. A
source's letter holds what was read, as text if it is no bytes.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from ottla.connect.data.errors import java_class_of
from ottla.connect.providers import masked

PREFIX: Final = "__connect.errors."
SOURCE_PARTITION: Final = f"{PREFIX}source.partition"
"""Ours: where a source read it."""
CUT: Final = f"{PREFIX}cut"
"""Ours: what is not in the letter, or not all of it, as its topic takes no larger ones."""
MOST_TRACE: Final = 32 << 10
"""Characters of a stack trace in a header, and in a status."""

RawHeader = tuple[str, bytes | None]


class Stage(Enum):
    """Java's names."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class Failure(NamedTuple):
    """What went wrong with one record. Plain, as it crosses processes."""

    stage: str
    class_name: str
    """Of the converter, transform or connector."""
    error_class: str
    """As Java calls it."""
    message: str
    trace: str

    @classmethod
    def of(cls, stage: Stage, class_name: str, error: BaseException | str, secrets: Sequence[str]) -> Failure:
        """Without the secrets: it goes into logs and topics."""
        message = masked(str(error), secrets)
        if isinstance(error, str):
            return cls(stage.value, class_name, "org.apache.kafka.connect.errors.ConnectException", message, message)
        trace = masked("".join(traceback.format_exception(error)), secrets)[-MOST_TRACE:]
        return cls(stage.value, class_name, java_class_of(error), message, trace)


class Letter(NamedTuple):
    """One for the queue: the record as it was, and why it is there."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[RawHeader]
    timestamp: int | None
    topic: str
    partition: int | None
    offset: int | None
    failure: Failure
    source_partition: str | None = None

    @property
    def where(self) -> str:
        if self.offset is not None:
            return f"the record at offset {self.offset} of {self.topic}-{self.partition}"
        return f"a record for {self.topic or 'no topic'} read from {self.source_partition}"


def letter_headers(letter: Letter, connector: str, task: int) -> list[RawHeader]:
    """The record's own, then Connect's."""
    failure = letter.failure
    said: dict[str, object] = {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "connector.name": connector,
        "task.id": task,
        "stage": failure.stage,
        "class.name": failure.class_name,
        "exception.class.name": failure.error_class,
        "exception.message": failure.message,
        "exception.stacktrace": failure.trace,
    }
    headers: list[RawHeader] = list(letter.headers)
    headers += [(PREFIX + name, None if value is None else str(value).encode()) for name, value in said.items()]
    if letter.source_partition is not None:
        headers.append((SOURCE_PARTITION, letter.source_partition.encode()))
    return headers


def as_bytes(value: Any) -> bytes | None:
    """What a source read and nobody could convert."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")
    try:
        return json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace")
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode(errors="replace")


class LetterPolicy(NamedTuple):
    """What a connector's config says about errors."""

    tolerates_all: bool = False
    retry_timeout_ms: int = 0
    """How long something is tried again; -1: without end."""
    retry_delay_max_ms: int = 60_000
    log: bool = False
    log_messages: bool = False
    topic: str = ""
    """Of the dead letters; empty: none."""
    replication: int = 3
    with_headers: bool = False

    @staticmethod
    def of(config: Mapping[str, str | None]) -> LetterPolicy:
        def text(name: str, default: str) -> str:
            found = config.get(name)
            return default if found is None else found.strip()

        return LetterPolicy(
            tolerates_all=text("errors.tolerance", "none").lower() == "all",
            retry_timeout_ms=int(text("errors.retry.timeout", "0")),
            retry_delay_max_ms=int(text("errors.retry.delay.max.ms", "60000")),
            log=text("errors.log.enable", "false").lower() == "true",
            log_messages=text("errors.log.include.messages", "false").lower() == "true",
            topic=text("errors.deadletterqueue.topic.name", ""),
            replication=int(text("errors.deadletterqueue.topic.replication.factor", "3")),
            with_headers=text("errors.deadletterqueue.context.headers.enable", "false").lower() == "true",
        )
