"""What goes wrong while records are processed, and what then: fail or continue, and a dead letter in both cases.

Handlers are `fail`, `continue`, or a function (ErrorContext, exception) that gives one of the two, or a
`HandlerResponse` with dead letters of its own.
"""

from collections.abc import Callable, Sequence
from traceback import format_exception
from typing import Any, Final, NamedTuple

from ottla.streams.record import Headers, Raw

AGGREGATE_RESULT: Final = "ottla-aggregate-result"
"""Stands for a topic that is never written: what a native aggregate of Spark hands to a Python stage."""

FAIL: Final = "fail"
CONTINUE: Final = "continue"
RETRY: Final = "retry"
"""Only what could not be produced may be tried again, and that has been for task.timeout.ms when a handler is asked."""

DESERIALIZATION: Final = "deserialization.exception.handler"
PROCESSING: Final = "processing.exception.handler"
PRODUCTION: Final = "production.exception.handler"
DEAD_LETTERS: Final = "errors.dead.letter.queue.topic.name"


class StreamsError(Exception):
    """Processing cannot go on. The text says where; the cause says why."""


class NeedsSparkError(StreamsError):
    """`spark(...)` was to be computed where there is no Spark: in the test driver."""

    def __init__(self, function: object) -> None:
        name = getattr(function, "__qualname__", None) or repr(function)
        super().__init__(
            f"spark({name}, ...) is a function of Spark's columns, and the test driver runs without Spark. "
            "Say it by ottla.streams.expressions or a Python callable to have it tested here, "
            "or run the application for a test: app.run(once=True) against ottla.testing.Cluster"
        )


class ProducerRecord(NamedTuple):
    """A record for a topic, as bytes."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    """None: the key says it."""
    timestamp: int | None = None
    """None: that of the record which led to it."""


class HandlerResponse(NamedTuple):
    """What a handler says, made by `resume`, `fail` or `retry`. Its dead letters are then the only ones (KIP-1034)."""

    result: str
    dead_letters: tuple[ProducerRecord, ...] = ()

    @classmethod
    def resume(cls, dead_letters: Sequence[ProducerRecord] = ()) -> "HandlerResponse":
        return cls(CONTINUE, tuple(dead_letters))

    @classmethod
    def fail(cls, dead_letters: Sequence[ProducerRecord] = ()) -> "HandlerResponse":
        """Nothing of the batch is out then, its dead letters neither."""
        return cls(FAIL, tuple(dead_letters))

    @classmethod
    def retry(cls) -> "HandlerResponse":
        """Of a production handler. As in Kafka Streams this fails where trying again cannot help."""
        return cls(RETRY)


class ErrorContext(NamedTuple):
    """Which record it was, as it lay in its topic. In a punctuator there is none: topic None, offset -1. Behind an
    aggregate of Spark's it is a result, which comes of no one record: topic AGGREGATE_RESULT, offset -1. Nor is one
    known of a result that its topic cannot take: see `record`."""

    node: str
    task_id: str
    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers
    key: bytes | None
    value: bytes | None
    record: Any = None
    """In processing the Record that the node was given, where that is known, in production the one that was to be
    written: a ProducerRecord if it is in bytes already."""

    def __str__(self) -> str:
        task = f", task {self.task_id}" if self.task_id else ""
        return f"{self._where()}, node {self.node}{task}"

    def _where(self) -> str:
        if isinstance(self.record, ProducerRecord):
            return f"at a record for {self.record.topic} with the key {self.record.key!r}"
        if self.topic is None:
            return "in a punctuator"
        if self.topic == AGGREGATE_RESULT:
            return f"at the result of an aggregate with the key {self.key!r}"
        return f"at {self.topic}-{self.partition} offset {self.offset}"


Handler = str | Callable[[ErrorContext, BaseException], str | HandlerResponse]


class Verdict(NamedTuple):
    fails: bool
    dead_letters: tuple[Raw, ...]


def verdict(
    handler: Handler, context: ErrorContext, error: BaseException, dead_letters: str | None, *, may_retry: bool = False
) -> Verdict:
    """What the handler says, and the dead letters that come of it: its own, or the usual one for that topic. Raises
    StreamsError for a handler that fails itself."""
    said = handler if isinstance(handler, str) else _asked(handler, context, error)
    result, own = (said, None) if isinstance(said, str) else said
    expected = (FAIL, CONTINUE, RETRY) if may_retry else (FAIL, CONTINUE)
    if result not in expected:
        raise StreamsError(
            f"the exception handler gave {result!r} {context}: {' or '.join(map(repr, expected))} is expected"
        )
    if own is not None:
        letters = tuple(_raw(record, context.timestamp) for record in own)
    else:
        letters = () if dead_letters is None else (dead_letter(dead_letters, context, error),)
    return Verdict(result != CONTINUE, letters)


def _asked(
    handler: Callable[[ErrorContext, BaseException], str | HandlerResponse],
    context: ErrorContext,
    error: BaseException,
) -> str | HandlerResponse:
    try:
        said = handler(context, error)
    except Exception as failure:
        raise StreamsError(f"the exception handler itself failed {context}") from failure
    if not isinstance(said, str | HandlerResponse):
        raise StreamsError(
            f"the exception handler gave {said!r} {context}: 'fail', 'continue' or a HandlerResponse is expected"
        )
    return said


def _raw(record: ProducerRecord, timestamp: int) -> Raw:
    place = -1 if record.partition is None else record.partition
    at = max(timestamp, 0) if record.timestamp is None else record.timestamp
    return Raw(record.topic, place, -1, record.key, record.value, at, tuple(record.headers))


def dead_letter(topic: str, context: ErrorContext, error: BaseException) -> Raw:
    """The record as it was, with Kafka Streams' headers (KIP-1034) after its own."""
    told = (
        ("exception", f"{type(error).__module__}.{type(error).__qualname__}"),
        ("message", str(error)),
        ("stacktrace", "".join(format_exception(error))),
        ("topic", context.topic),
        ("partition", str(context.partition)),
        ("offset", str(context.offset)),
    )
    headers = tuple((f"__streams.errors.{name}", None if text is None else text.encode()) for name, text in told)
    return Raw(topic, -1, -1, context.key, context.value, context.timestamp, (*context.headers, *headers))


def handlers_of(config: Any) -> tuple[Handler, Handler, Handler]:
    """For deserialization, processing and production."""
    deserialization, processing, production = (
        config.get(name) or FAIL for name in (DESERIALIZATION, PROCESSING, PRODUCTION)
    )
    return deserialization, processing, production
