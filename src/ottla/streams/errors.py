"""What goes wrong while records are processed, and what then: fail or continue, and a dead letter in both cases.

Handlers are `fail`, `continue`, or a function (ErrorContext, exception) that gives one of the two.
"""

from collections.abc import Callable
from traceback import format_exception
from typing import Any, Final, NamedTuple

from ottla.streams.record import Headers, Raw

AGGREGATE_RESULT: Final = "ottla-aggregate-result"
"""Stands for a topic that is never written: what a native aggregate of Spark hands to a Python stage."""

FAIL: Final = "fail"
CONTINUE: Final = "continue"

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


class ErrorContext(NamedTuple):
    """Which record it was, as it lay in its topic. In a punctuator there is none: topic None, offset -1. Behind an
    aggregate of Spark's it is a result, which comes of no one record: topic AGGREGATE_RESULT, offset -1."""

    node: str
    task_id: str
    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers
    key: bytes | None
    value: bytes | None

    def __str__(self) -> str:
        return f"{self._where()}, node {self.node}, task {self.task_id}"

    def _where(self) -> str:
        if self.topic is None:
            return "in a punctuator"
        if self.topic == AGGREGATE_RESULT:
            return f"at the result of an aggregate with the key {self.key!r}"
        return f"at {self.topic}-{self.partition} offset {self.offset}"


Handler = str | Callable[[ErrorContext, BaseException], str]


def answer(handler: Handler, context: ErrorContext, error: BaseException) -> str:
    if isinstance(handler, str):
        return handler
    try:
        said = handler(context, error)
    except Exception as failure:
        raise StreamsError(f"the exception handler itself failed {context}") from failure
    if said not in (FAIL, CONTINUE):
        raise StreamsError(f"the exception handler gave {said!r} {context}: 'fail' or 'continue' is expected")
    return said


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
