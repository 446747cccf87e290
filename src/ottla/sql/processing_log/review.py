"""One record of what a query reads, looked at for what goes wrong with it: the same serdes and expressions, in Python.

Behind a join, an aggregate or a table function the rows are others than the records: there expressions are not seen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.serdes.base import Serde, SerdeError, Where, placed
from ottla.serdes.types import Type
from ottla.sql.analysis.scope import key_type, record_types
from ottla.sql.analysis.typed import Read, TypedQuery
from ottla.sql.model import DataSource
from ottla.sql.plain import json_text, shown
from ottla.sql.processing_log.entries import DESERIALIZATION, RECORD, SOURCE_STEP, Problem
from ottla.sql.processing_log.failing import Notice, is_fallible, watched
from ottla.sql.records import Formats, event_column, event_ms
from ottla.streams.expressions import Expression, Inputs
from ottla.streams.expressions.bound import Evaluator
from ottla.streams.record import Raw
from ottla.streams.windows import Windowed

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

WHERE: Final = "WhereFilter"
GROUP_BY: Final = "Aggregate.GroupBy"
PARTITION_BY: Final = "PartitionBy"
PROJECT: Final = "Project"


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    lost: str
    """What is not there when it has no result."""
    run: Evaluator


class Review:
    """Of the records that one query reads. Not for several threads at a time."""

    def __init__(self, query: TypedQuery, registry: "Registry | None") -> None:
        self._sources = {source.topic: _Reading(source, Formats(registry)) for source in query.reads()}
        self._failed: list[str] = []
        self._where: Evaluator | None = None
        self._steps: list[_Step] = []
        if isinstance(query.source, Read):
            source = query.source.source
            types = record_types(source.keys, source.values, source.window is not None)
            notice: Notice = self._failed.append
            self._where = None if query.where is None else watched(query.where.bind(types), notice)
            self._steps = [
                _Step(name, lost, watched(expression.bind(types), notice))
                for name, lost, expression in _expressions(query)
                if is_fallible(expression.bind(types))
            ]
            self.fallible = bool(self._steps) or (query.where is not None and is_fallible(query.where.bind(types)))
        else:
            self.fallible = False
        """Whether records that can be read may have something wrong with them."""

    def problems(self, raw: Raw, now_ms: int) -> list[Problem]:
        """In the order in which the query would meet them."""
        reading = self._sources.get(raw.topic)
        if reading is None:
            return []
        key, value, problem = reading.read(raw)
        if problem is not None:
            return [problem]
        if value is None:
            return []
        inputs = Inputs(
            key, value, raw.timestamp, raw.headers, raw.topic, raw.partition, max(raw.offset, 0), now=now_ms
        )
        if reading.time is not None:
            moment = reading.time(inputs)
            if moment is None or moment < 0:
                return [reading.untimed(raw, key, value)]
            inputs = inputs._replace(timestamp=moment)
        return list(self._of_expressions(inputs, raw, reading)) if self.fallible else []

    def _of_expressions(self, inputs: Inputs, raw: Raw, reading: "_Reading") -> Iterator[Problem]:
        if self._where is not None:
            kept, failed = self._run(self._where, inputs)
            for words in failed:
                yield reading.failed(raw, inputs, WHERE, words if kept is True else f"{words}: the row is left out")
            if kept is not True:
                return
        for step in self._steps:
            _, failed = self._run(step.run, inputs)
            for words in failed:
                yield reading.failed(raw, inputs, step.name, f"{words}: {step.lost}")

    def _run(self, evaluate: Evaluator, inputs: Inputs) -> tuple[Any, list[str]]:
        self._failed.clear()
        return evaluate(inputs), list(dict.fromkeys(self._failed))


def _expressions(query: TypedQuery) -> Iterator[tuple[str, str, Expression]]:
    """Step, what is lost with it, and expression of all that is made of the record itself."""
    if query.exploded is not None:
        for name, argument in (*query.exploded.fields, *query.exploded.lists):
            yield PROJECT, _column(name), argument.expression
    elif query.grouping is not None:
        for name, argument in query.grouping.inputs:
            lost = "the row is left out" if name in query.grouping.names else "what is aggregated is null"
            yield GROUP_BY, lost, argument.expression
    else:
        if query.key_changes:
            for name, argument in query.key:
                yield PARTITION_BY, _column(name), argument.expression
        for name, argument in query.values:
            yield PROJECT, _column(name), argument.expression


def _column(name: str) -> str:
    return f"the column {name} is null"


class _Reading:
    """One source: its serdes, and the time of its records."""

    def __init__(self, source: DataSource, formats: Formats) -> None:
        self._source = source
        self._where = Where(source.topic)
        serdes: Sequence[tuple[str, Serde[Any], str]] = (
            ("key", formats.key(source), source.key_format.name),
            ("value", formats.value(source), source.value_format.name),
        )
        self._parts = [(name, placed(serde, self._where), format) for name, serde, format in serdes]
        types = record_types(source.keys, source.values, source.window is not None)
        at = source.event_time
        self.time = None if at is None else event_ms(event_column(source, at), at).compile(types)

    def read(self, raw: Raw) -> tuple[Any, Any, Problem | None]:
        self._where.headers = list(raw.headers)
        found: list[Any] = []
        for (name, serde, format), data in zip(self._parts, (raw.key, raw.value), strict=True):
            try:
                found.append(serde.deserialize(data))
            except SerdeError as error:
                message = f"the {name} of {_place(raw)} cannot be read as {format}"
                problem = Problem(DESERIALIZATION, SOURCE_STEP, message, str(error), name, raw.topic, raw)
                return None, None, problem
        return found[0], found[1], None

    def untimed(self, raw: Raw, key: Any, value: Any) -> Problem:
        at = self._source.event_time
        assert at is not None
        message = f"{at.column} of {_place(raw)} is no time: the row is left out"
        return Problem(RECORD, SOURCE_STEP, message, topic=raw.topic, raw=raw, shown=self._shown(key, value))

    def failed(self, raw: Raw, inputs: Inputs, step: str, message: str) -> Problem:
        shown_record = self._shown(inputs.key, inputs.value)
        return Problem(RECORD, step, f"{_place(raw)}: {message}", topic=raw.topic, raw=raw, shown=shown_record)

    def _shown(self, key: Any, value: Any) -> str:
        bare = key.key if isinstance(key, Windowed) else key
        source = self._source
        plain = {
            "key": shown(bare, key_type(source.keys)) if source.keys else None,
            "value": shown(value, Type("struct", fields=source.values)),
        }
        return json_text(plain)


def _place(raw: Raw) -> str:
    return f"{raw.topic}-{raw.partition}" + (f" offset {raw.offset}" if raw.offset >= 0 else "")
