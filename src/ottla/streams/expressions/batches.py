"""Aggregates of the user's own that are given many values at once, as columns of Arrow."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.serdes.json import json_writer
from ottla.serdes.types import Type, parse_type
from ottla.streams.expressions.folds import FoldFunctions

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.streams.expressions.aggregates import BoundAggregate


class BatchAggregate(ABC):
    """An aggregate over columns. Say what it takes, keeps and returns, as names of types:

        class Spread(BatchAggregate):
            takes = ("double",)
            keeps = "struct<low: double, high: double>"
            returns = "double"

    `add` is given the state and a column for each argument, all of one key: on Spark the values of a whole batch, in
    the test driver one at a time. It gives another state and leaves the one it was given alone. Nulls are in the
    columns; a time is a column of milliseconds.
    """

    takes: ClassVar[tuple[str, ...]]
    keeps: ClassVar[str]
    returns: ClassVar[str]

    @abstractmethod
    def initial(self) -> Any: ...

    @abstractmethod
    def add(self, state: Any, *columns: "pa.Array") -> Any: ...

    def undo(self, state: Any, *columns: "pa.Array") -> Any:
        """Takes values back, so that it can follow a table. Leave it out where that is not possible."""
        raise NotImplementedError

    @abstractmethod
    def merge(self, state: Any, other: Any) -> Any:
        """Of two sessions that become one."""

    @abstractmethod
    def result(self, state: Any) -> Any: ...

    @property
    def can_undo(self) -> bool:
        return type(self).undo is not BatchAggregate.undo

    def argument_types(self) -> list[Type]:
        return [_declared(self, "takes", each) for each in self.takes]

    def result_type(self) -> Type:
        return _declared(self, "returns", self.returns)

    def state_type(self) -> Type:
        return _declared(self, "keeps", self.keeps)


def _declared(own: BatchAggregate, name: str, text: str) -> Type:
    try:
        return parse_type(text)
    except ValueError as error:
        raise TypeError(f"{type(own).__name__}.{name}: {error}") from None


class BatchFold(FoldFunctions):
    """Calls it. What it gives has to be of the types that it says."""

    batched = True

    def __init__(self, bound: "BoundAggregate") -> None:
        # Arrow is there wherever Spark is; a topology is defined without both.
        import pyarrow as pa  # noqa: PLC0415

        from ottla.serdes.arrow import arrow_type, to_column  # noqa: PLC0415

        self._own: BatchAggregate = bound.options["own"]
        self._array = pa.array
        self._columns = [
            (argument.evaluator(), to_column(argument.type), arrow_type(argument.type)) for argument in bound.arguments
        ]
        self._check_state = json_writer(self._own.state_type())
        self._check_result = json_writer(bound.type)

    def initial(self) -> Any:
        return self._kept("initial", self._own.initial())

    def add(self, state: Any, inputs: Any) -> Any:
        return self.add_all(state, (inputs,))

    def add_all(self, state: Any, several: Sequence[Any]) -> Any:
        return self._kept("add", self._own.add(state, *self._arrays(several)))

    def undo(self, state: Any, inputs: Any) -> Any:
        return self._kept("undo", self._own.undo(state, *self._arrays((inputs,))))

    def merge(self, state: Any, other: Any) -> Any:
        return self._kept("merge", self._own.merge(state, other))

    def result(self, state: Any) -> Any:
        return self._checked("result", self._own.result(state), self._check_result)

    def _arrays(self, several: Sequence[Any]) -> "list[pa.Array]":
        found = []
        for evaluate, convert, kind in self._columns:
            values = [evaluate(inputs) for inputs in several]
            found.append(self._array(values if convert is None else list(map(convert, values)), kind))
        return found

    def _kept(self, method: str, state: Any) -> Any:
        return self._checked(method, state, self._check_state)

    def _checked(self, method: str, given: Any, check: Callable[[Any], str]) -> Any:
        try:
            check(given)
        except (TypeError, ValueError) as error:
            declared = self._own.returns if method == "result" else self._own.keeps
            raise TypeError(f"{type(self._own).__name__}.{method} has to give {declared}: {error}") from None
        return given
