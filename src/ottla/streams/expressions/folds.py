"""Aggregates record by record, in plain Python: what tasks and the test driver compute where Spark has its own."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from ottla.serdes import values as v
from ottla.serdes.types import DOUBLE, Type
from ottla.streams.expressions.functions import Evaluator


class FoldFunctions(ABC):
    """initial, then add for each record, then result. None stands for "nothing yet"."""

    def initial(self) -> Any:
        return None

    @abstractmethod
    def add(self, state: Any, inputs: Any) -> Any:
        """The state with one more record."""

    @abstractmethod
    def merge(self, state: Any, other: Any) -> Any: ...

    def result(self, state: Any) -> Any:
        return state

    def resume(self, result: Any) -> Any:
        """The state that gave a result, as far as the result tells: not possible for an average."""
        return result


class _OfRecords(FoldFunctions):
    """Of one expression over each record; None: of the records themselves."""

    def __init__(self, evaluate: Evaluator | None, kind: Type) -> None:
        self._evaluate = evaluate
        self._type = kind


class _Count(_OfRecords):
    def initial(self) -> int:
        return 0

    def add(self, state: int, inputs: Any) -> int:
        return state + 1 if self._evaluate is None or self._evaluate(inputs) is not None else state

    def merge(self, state: int | None, other: int | None) -> int:
        return (state or 0) + (other or 0)

    def resume(self, result: int | None) -> int:
        return result or 0


class _OfValues(_OfRecords):
    """A null changes nothing."""

    def add(self, state: Any, inputs: Any) -> Any:
        given = None if self._evaluate is None else self._evaluate(inputs)
        return state if given is None else self._with(state, given)

    def merge(self, state: Any, other: Any) -> Any:
        return state if other is None else other if state is None else self._merged(state, other)

    @abstractmethod
    def _with(self, state: Any, given: Any) -> Any: ...

    def _merged(self, state: Any, other: Any) -> Any:
        return self._with(state, other)


class _Sum(_OfValues):
    _TOO_LARGE: Final = "too large"

    def _with(self, state: Any, given: Any) -> Any:
        if self._TOO_LARGE in (state, given):
            return self._TOO_LARGE
        total = given if state is None else state + given
        return total if self._type == DOUBLE or v.fit_long(total) is not None else self._TOO_LARGE

    def result(self, state: Any) -> Any:
        return None if state == self._TOO_LARGE else state


class _Extreme(_OfValues):
    _largest = False

    def _with(self, state: Any, given: Any) -> Any:
        return v.extreme((state, given), self._largest)


class _Maximum(_Extreme):
    _largest = True


class _Average(_OfValues):
    """The state is [sum, count]."""

    def _with(self, state: Any, given: float) -> list[float]:
        return [given, 1] if state is None else [state[0] + given, state[1] + 1]

    def _merged(self, state: list[float], other: list[float]) -> list[float]:
        return [state[0] + other[0], state[1] + other[1]]

    def result(self, state: Any) -> float | None:
        return None if state is None else state[0] / state[1]

    def resume(self, result: Any) -> NoReturn:
        raise ValueError("an average does not tell its sum and count: keep the state, not the result")


class StructFold(FoldFunctions):
    def __init__(self, parts: Mapping[str, FoldFunctions]) -> None:
        self._parts = parts

    def initial(self) -> list[Any]:
        return [part.initial() for part in self._parts.values()]

    def add(self, state: Sequence[Any], inputs: Any) -> list[Any]:
        return [part.add(each, inputs) for part, each in zip(self._parts.values(), state, strict=True)]

    def merge(self, state: Sequence[Any], other: Sequence[Any]) -> list[Any]:
        return [part.merge(*both) for part, *both in zip(self._parts.values(), state, other, strict=True)]

    def result(self, state: Sequence[Any]) -> dict[str, Any]:
        return {name: part.result(each) for (name, part), each in zip(self._parts.items(), state, strict=True)}

    def resume(self, result: Mapping[str, Any]) -> list[Any]:
        return [part.resume(result.get(name)) for name, part in self._parts.items()]


FOLDS: Final[dict[str, type[_OfRecords]]] = {
    "count": _Count,
    "sum": _Sum,
    "min": _Extreme,
    "max": _Maximum,
    "avg": _Average,
}
