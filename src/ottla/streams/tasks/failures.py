"""What a task does when something goes wrong: asks the handler, writes the dead letter, fails or goes on."""

from typing import Any, Final

from ottla.streams.errors import (
    AGGREGATE_RESULT,
    DEAD_LETTERS,
    FAIL,
    ErrorContext,
    StreamsError,
    handlers_of,
    verdict,
)
from ottla.streams.own_lines import own_lines
from ottla.streams.record import Raw, Record
from ottla.streams.tasks.current import TaskState

DESERIALIZATION_ERROR: Final = "deserialization-error"
PROCESSING_ERROR: Final = "processing-error"
SERIALIZATION_ERROR: Final = "serialization-error"


class TaskErrors:
    def __init__(self, state: TaskState) -> None:
        self._state = state
        self._deserialization, self._processing, self._production = handlers_of(state.config)
        self._dead_letters: str | None = state.config.get(DEAD_LETTERS)

    @property
    def always_fails(self) -> bool:
        """Whether no exception of a node is ever survived: then nobody has to catch any on the way."""
        return self._processing == FAIL

    def in_deserialization(self, node: str, raw: Raw, error: Exception) -> None:
        context = ErrorContext(node, self._state.task_id, *raw[:3], raw.timestamp, raw.headers, raw.key, raw.value)
        if self._fails(self._deserialization, context, error):
            raise StreamsError(f"a record could not be read {context}: {error}{own_lines(error)}") from error
        self._state.drop(DESERIALIZATION_ERROR)

    def in_processing(
        self,
        node: str,
        error: Exception,
        *,
        answered: str | None = None,
        timestamp: int = -1,
        record: Record | None = None,
    ) -> None:
        """`answered`: the answer of a case in which nobody is asked."""
        context = self._context(node, timestamp)._replace(record=record)
        if self._fails(answered or self._processing, context, error):
            why = f"{type(error).__name__}: {error}{own_lines(error)}"
            raise StreamsError(f"processing failed {context}: {why}") from error
        self._state.drop(PROCESSING_ERROR)

    def in_production(self, node: str, topic: str, record: Record, error: Exception) -> None:
        context = self._context(node, record.timestamp)._replace(record=record)
        if self._fails(self._production, context, error, may_retry=True):
            why = f"{error}{own_lines(error)}"
            raise StreamsError(f"a record for {topic} could not be written {context}: {why}") from error
        self._state.drop(SERIALIZATION_ERROR)

    def _context(self, node: str, timestamp: int) -> ErrorContext:
        task_id, raw = self._state.task_id, self._state.raw
        if raw is None:
            return ErrorContext(node, task_id, None, -1, -1, max(timestamp, 0), (), None, None)
        at = raw.timestamp if timestamp < 0 else timestamp
        place = (raw.topic, -1, -1) if raw.topic == AGGREGATE_RESULT else raw[:3]
        return ErrorContext(node, task_id, *place, at, raw.headers, raw.key, raw.value)

    def _fails(self, handler: Any, context: ErrorContext, error: Exception, *, may_retry: bool = False) -> bool:
        said = verdict(handler, context, error, self._dead_letters, may_retry=may_retry)
        self._state.outputs += said.dead_letters
        return said.fails
