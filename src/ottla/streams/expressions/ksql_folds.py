"""Folds with ksqlDB's rules: a sum keeps the type of what is added, wraps as in Java and is 0 of nothing."""

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ottla.serdes import decimals
from ottla.serdes import values as v
from ottla.serdes.types import INT, LONG, Type
from ottla.streams.expressions.folds import OfValues

if TYPE_CHECKING:
    from ottla.streams.expressions.aggregates import BoundAggregate


def wrap(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def _keeping(kind: Type) -> Callable[[Any], Any]:
    """What a total of the type becomes."""
    if kind == INT:
        return lambda total: wrap(total, 32)
    if kind == LONG:
        return lambda total: wrap(total, 64)
    if kind.name == "decimal":
        return lambda total: _fitted(total, kind)
    return lambda total: total


def _fitted(total: Decimal, kind: Type) -> Decimal:
    found = decimals.fit(total, kind)
    if found is None:
        raise OverflowError(f"the sum {total} has more digits than {kind} has room for; CAST to one with more")
    return found


class WrappingSum(OfValues):
    """The state is the sum: one that wraps needs no more to take a value back."""

    def __init__(self, bound: "BoundAggregate") -> None:
        super().__init__(bound)
        self._keep = _keeping(bound.type)
        self._zero: Any = Decimal(0) if bound.type.name == "decimal" else 0.0 if bound.type.name == "double" else 0

    def initial(self) -> Any:
        return self._keep(self._zero)

    def plus(self, state: Any, given: Any) -> Any:
        known = self.initial() if state is None else state
        total = decimals.EXACT.add(known, given) if isinstance(known, Decimal) else known + given
        return self._keep(total)

    def minus(self, state: Any, given: Any) -> Any:
        return self.plus(state, v.negated(given))

    def resume(self, result: Any) -> Any:
        return self.initial() if result is None else super().resume(result)


class WrappingSumOfLists(WrappingSum):
    """Of all items of all lists."""

    def plus(self, state: Any, given: Any) -> Any:
        for each in given if isinstance(given, list) else [given]:
            state = state if each is None else super().plus(state, each)
        return state

    def minus(self, state: Any, given: Any) -> Any:
        for each in given:
            state = state if each is None else super().minus(state, each)
        return state


class WrappingAverage(OfValues):
    """The state is [sum, count]; a sum of integers wraps, the average of nothing is 0.0."""

    def __init__(self, bound: "BoundAggregate") -> None:
        super().__init__(bound)
        self._keep = _keeping(bound.arguments[0].type)

    def plus(self, state: Any, given: Any) -> list[Any]:
        return [given, 1] if state is None else [self._keep(state[0] + given), state[1] + 1]

    def minus(self, state: Any, given: Any) -> list[Any] | None:
        return None if state is None or state[1] <= 1 else [self._keep(state[0] - given), state[1] - 1]

    def merged(self, state: list[Any], other: list[Any]) -> list[Any]:
        return [self._keep(state[0] + other[0]), state[1] + other[1]]

    def result(self, state: Any) -> float:
        return 0.0 if state is None else float(state[0]) / state[1]
