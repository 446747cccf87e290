"""Aggregates record by record, in plain Python: what tasks and the test driver compute where Spark has its own.

Here are the simple ones and what all have in common; `collecting` keeps values, `statistics` moments and sketches,
`batches` calls an aggregate of the user's own. Each is declared in `aggregates`.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from ottla.serdes import decimals
from ottla.serdes import values as v
from ottla.serdes.json import json_reader
from ottla.serdes.types import LONG, Type

if TYPE_CHECKING:
    from ottla.streams.expressions.aggregates import BoundAggregate


class FoldFunctions(ABC):
    """initial, then add for each record, then result. A state is made of values of our types, lists and dicts, and is
    not changed once it was given out: add gives another one. None stands for "nothing yet"."""

    batched: bool = False
    """Whether it is worth while to call `add_all` with many records."""

    def initial(self) -> Any:
        return None

    @abstractmethod
    def add(self, state: Any, inputs: Any) -> Any:
        """The state with one more record."""

    def add_all(self, state: Any, several: Sequence[Any]) -> Any:
        for inputs in several:
            state = self.add(state, inputs)
        return state

    def undo(self, state: Any, inputs: Any) -> Any:
        """The state without a record that was added before. Only of those that are declared to have it."""
        raise AssertionError(f"{type(self).__name__} has no way back")

    @abstractmethod
    def merge(self, state: Any, other: Any) -> Any:
        """Of two sessions that become one."""

    def result(self, state: Any) -> Any:
        return state

    def resume(self, result: Any) -> Any:
        """The state that gave a result, where the result tells it."""
        return result


def same(left: Any, right: Any) -> bool:
    """Values of one type; NaN is itself."""
    return bool(left == right) or (isinstance(left, float) and v.order_key(left) == v.order_key(right))


class OfValues(FoldFunctions):
    """Of one argument. A null changes nothing, unless a fold says otherwise."""

    def __init__(self, bound: "BoundAggregate") -> None:
        self._type = bound.type
        self._evaluate = bound.arguments[0].evaluator() if bound.arguments else None
        self._options = bound.options
        self._plain = not bound.type.has("decimal", "date", "time", "timestamp", "binary")

    def given(self, inputs: Any) -> Any:
        return None if self._evaluate is None else self._evaluate(inputs)

    def add(self, state: Any, inputs: Any) -> Any:
        given = self.given(inputs)
        return state if given is None else self.plus(state, given)

    def undo(self, state: Any, inputs: Any) -> Any:
        given = self.given(inputs)
        return state if given is None else self.minus(state, given)

    def merge(self, state: Any, other: Any) -> Any:
        return state if other is None else other if state is None else self.merged(state, other)

    def resume(self, result: Any) -> Any:
        return result if self._plain else typed_again(result, self._type)

    @abstractmethod
    def plus(self, state: Any, given: Any) -> Any: ...

    def minus(self, state: Any, given: Any) -> Any:
        raise AssertionError(f"{type(self).__name__} has no way back")

    def merged(self, state: Any, other: Any) -> Any:
        return self.plus(state, other)


def typed_again(result: Any, kind: Type) -> Any:
    """A result that went through a serde without types has lost them."""
    if isinstance(result, float):
        return decimals.from_double(result, kind) if kind.name == "decimal" else result
    if isinstance(result, (int, str)) and kind.name not in {"string", "int", "long", "boolean"}:
        return json_reader(kind)(result)
    match kind.name, result:
        case "array", list() if kind.element is not None:
            return [typed_again(each, kind.element) for each in result]
        case "map", dict() if kind.element is not None:
            return {name: typed_again(each, kind.element) for name, each in result.items()}
        case "struct", dict():
            return {name: typed_again(result.get(name), part) for name, part in kind.fields}
    return result


class Count(OfValues):
    def initial(self) -> int:
        return 0

    def add(self, state: int, inputs: Any) -> int:
        return state + 1 if self._evaluate is None or self._evaluate(inputs) is not None else state

    def undo(self, state: int, inputs: Any) -> int:
        return state - 1 if self._evaluate is None or self._evaluate(inputs) is not None else state

    def plus(self, state: int, given: int) -> int:
        return state + given

    def merge(self, state: int | None, other: int | None) -> int:
        return (state or 0) + (other or 0)

    def resume(self, result: int | None) -> int:
        return result or 0


class Sum(OfValues):
    """Once it did not fit it is null for ever, as in Spark."""

    _TOO_LARGE: Final = "too large"

    def plus(self, state: Any, given: Any) -> Any:
        if isinstance(state, str) or isinstance(given, str):
            return self._TOO_LARGE
        total = given if state is None else _plus(state, given)
        return self._TOO_LARGE if fitting(total, self._type) is None else total

    def result(self, state: Any) -> Any:
        return None if isinstance(state, str) else state


class UndoableSum(OfValues):
    """The state is [sum, count]: the sum has no limits, and without values there is none."""

    def plus(self, state: Any, given: Any) -> list[Any]:
        return [given, 1] if state is None else [_plus(state[0], given), state[1] + 1]

    def minus(self, state: Any, given: Any) -> list[Any] | None:
        return None if state is None or state[1] <= 1 else [_plus(state[0], v.negated(given)), state[1] - 1]

    def merged(self, state: list[Any], other: list[Any]) -> list[Any]:
        return [_plus(state[0], other[0]), state[1] + other[1]]

    def result(self, state: Any) -> Any:
        return None if state is None else fitting(state[0], self._type)


def _plus(left: Any, right: Any) -> Any:
    return decimals.EXACT.add(left, right) if isinstance(left, Decimal) else left + right


def fitting(total: Any, kind: Type) -> Any:
    if kind == LONG:
        return v.fit_long(total)
    return decimals.fit(total, kind) if kind.name == "decimal" else total


class SumOfLists(UndoableSum):
    """Of all items of all lists."""

    def given(self, inputs: Any) -> Any:
        several = super().given(inputs)
        return None if several is None else [each for each in several if each is not None]

    def plus(self, state: Any, given: Any) -> Any:
        for each in given:
            state = super().plus(state, each)
        return state

    def minus(self, state: Any, given: Any) -> Any:
        for each in given:
            state = super().minus(state, each)
        return state


class Average(OfValues):
    """The state is [sum, count]."""

    def plus(self, state: Any, given: float) -> list[float]:
        return [given, 1] if state is None else [state[0] + given, state[1] + 1]

    def minus(self, state: Any, given: float) -> list[float] | None:
        return None if state is None or state[1] <= 1 else [state[0] - given, state[1] - 1]

    def merged(self, state: list[float], other: list[float]) -> list[float]:
        return [state[0] + other[0], state[1] + other[1]]

    def result(self, state: Any) -> float | None:
        return None if state is None else state[0] / state[1]


class Extreme(OfValues):
    largest = False

    def plus(self, state: Any, given: Any) -> Any:
        return v.extreme((state, given), self.largest)


class Maximum(Extreme):
    largest = True


class UndoableExtreme(OfValues):
    """The state is every value that there is, with how often: [[value, count], ...] in order."""

    largest = False

    def plus(self, state: Any, given: Any) -> Any:
        held = state or []
        place = self._place(held, given)
        if place < len(held) and same(held[place][0], given):
            return [*held[:place], [held[place][0], held[place][1] + 1], *held[place + 1 :]]
        return [*held[:place], [given, 1], *held[place:]]

    def minus(self, state: Any, given: Any) -> Any:
        held = state or []
        place = self._place(held, given)
        if place == len(held) or not same(held[place][0], given):
            return state
        left = held[place][1] - 1
        return [*held[:place], *([[held[place][0], left]] if left else []), *held[place + 1 :]]

    @staticmethod
    def _place(held: list[Any], given: Any) -> int:
        return bisect_left(held, v.order_key(given), key=lambda each: v.order_key(each[0]))

    def merged(self, state: Any, other: Any) -> Any:
        for value, count in other:
            for _ in range(count):
                state = self.plus(state, value)
        return state

    def result(self, state: Any) -> Any:
        return state[-1 if self.largest else 0][0] if state else None


class UndoableMaximum(UndoableExtreme):
    largest = True


class StructFold(FoldFunctions):
    """Several side by side; their states in a list."""

    def __init__(self, parts: Mapping[str, FoldFunctions]) -> None:
        self._parts = parts
        self.batched = any(part.batched for part in parts.values())

    def initial(self) -> list[Any]:
        return [part.initial() for part in self._parts.values()]

    def add(self, state: Sequence[Any], inputs: Any) -> list[Any]:
        return [part.add(each, inputs) for part, each in zip(self._parts.values(), state, strict=True)]

    def add_all(self, state: Sequence[Any], several: Sequence[Any]) -> list[Any]:
        return [part.add_all(each, several) for part, each in zip(self._parts.values(), state, strict=True)]

    def undo(self, state: Sequence[Any], inputs: Any) -> list[Any]:
        return [part.undo(each, inputs) for part, each in zip(self._parts.values(), state, strict=True)]

    def merge(self, state: Sequence[Any], other: Sequence[Any]) -> list[Any]:
        return [part.merge(*both) for part, *both in zip(self._parts.values(), state, other, strict=True)]

    def result(self, state: Sequence[Any]) -> dict[str, Any]:
        return {name: part.result(each) for (name, part), each in zip(self._parts.items(), state, strict=True)}

    def resume(self, result: Mapping[str, Any]) -> list[Any]:
        return [part.resume(result.get(name)) for name, part in self._parts.items()]
