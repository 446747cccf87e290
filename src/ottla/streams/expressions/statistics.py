"""Folds that keep numbers about values: moments, correlation, how many different ones."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ottla.serdes import values as v
from ottla.streams.expressions.folds import OfValues

if TYPE_CHECKING:
    from ottla.streams.expressions.aggregates import BoundAggregate


class Variance(OfValues):
    """The state is [n, mean, sum of squared distances from it], carried on as Spark does (Welford)."""

    def initial(self) -> list[float]:
        return [0, 0.0, 0.0]

    def plus(self, state: list[float], given: float) -> list[float]:
        n, mean, squares = state
        distance = given - mean
        step = distance / (n + 1)
        return [n + 1, mean + step, squares + distance * (distance - step)]

    def minus(self, state: list[float], given: float) -> list[float]:
        n, mean, squares = state
        if n <= 1:
            return self.initial()
        before = (n * mean - given) / (n - 1)
        return [n - 1, before, max(0.0, squares - (given - mean) * (given - before))]

    def merged(self, state: list[float], other: list[float]) -> list[float]:
        n, mean, squares = state
        m, its_mean, its_squares = other
        if not n or not m:
            return other if not n else state
        distance = its_mean - mean
        return [n + m, mean + distance * m / (n + m), squares + its_squares + distance * distance * n * m / (n + m)]

    def result(self, state: list[float]) -> float:
        return state[2] / (state[0] - 1) if state[0] > 1 else 0.0


class Deviation(Variance):
    def result(self, state: list[float]) -> float:
        return math.sqrt(super().result(state))


class Correlation(OfValues):
    """Pearson's. The state is [n, mean x, mean y, sum of products, of squares of x, of squares of y], all around the
    means."""

    def __init__(self, bound: "BoundAggregate") -> None:
        super().__init__(bound)
        self._second = bound.arguments[1].evaluator()

    def initial(self) -> list[float]:
        return [0, 0.0, 0.0, 0.0, 0.0, 0.0]

    def given(self, inputs: Any) -> Any:
        x, y = super().given(inputs), self._second(inputs)
        return None if x is None or y is None else (x, y)

    def plus(self, state: list[float], given: tuple[float, float]) -> list[float]:
        n, mean_x, mean_y, products, squares_x, squares_y = state
        dx, dy = given[0] - mean_x, given[1] - mean_y
        new_x, new_y = mean_x + dx / (n + 1), mean_y + dy / (n + 1)
        return [
            n + 1,
            new_x,
            new_y,
            products + dx * (given[1] - new_y),
            squares_x + dx * (given[0] - new_x),
            squares_y + dy * (given[1] - new_y),
        ]

    def minus(self, state: list[float], given: tuple[float, float]) -> list[float]:
        n, mean_x, mean_y, products, squares_x, squares_y = state
        if n <= 1:
            return self.initial()
        old_x, old_y = (n * mean_x - given[0]) / (n - 1), (n * mean_y - given[1]) / (n - 1)
        dx, dy = given[0] - old_x, given[1] - old_y
        return [
            n - 1,
            old_x,
            old_y,
            products - dx * (given[1] - mean_y),
            max(0.0, squares_x - dx * (given[0] - mean_x)),
            max(0.0, squares_y - dy * (given[1] - mean_y)),
        ]

    def merged(self, state: list[float], other: list[float]) -> list[float]:
        if not state[0] or not other[0]:
            return other if not state[0] else state
        n, m = state[0], other[0]
        dx, dy, part = other[1] - state[1], other[2] - state[2], n * m / (n + m)
        return [
            n + m,
            state[1] + dx * m / (n + m),
            state[2] + dy * m / (n + m),
            state[3] + other[3] + dx * dy * part,
            state[4] + other[4] + dx * dx * part,
            state[5] + other[5] + dy * dy * part,
        ]

    def result(self, state: list[float]) -> float:
        """NaN below two, or where one of the two never changes."""
        spread = math.sqrt(state[4] * state[5])
        return state[3] / spread if state[0] > 1 and spread else math.nan


_REGISTER_BITS: Final = 14
_REST_BITS: Final = 64 - _REGISTER_BITS
_REGISTERS: Final = 1 << _REGISTER_BITS
_EXACT_UNTIL: Final = 1_024
_ALPHA: Final = 0.7213 / (1 + 1.079 / _REGISTERS)


class CountDistinct(OfValues):
    """Exact up to 1,024 different values, of which the state has the hashes, in order; beyond that it is the registers
    of a HyperLogLog, 2^14 bytes, about one per cent off."""

    def initial(self) -> list[int]:
        return []

    def plus(self, state: list[int] | bytes, given: Any) -> list[int] | bytes:
        return self._with(state, int.from_bytes(blake2b(v.json_text(given).encode(), digest_size=8).digest()))

    def _with(self, state: list[int] | bytes, hashed: int) -> list[int] | bytes:
        if isinstance(state, bytes):
            return _noted(state, [hashed])
        place = bisect_left(state, hashed)
        if place < len(state) and state[place] == hashed:
            return state
        if len(state) < _EXACT_UNTIL:
            return [*state[:place], hashed, *state[place:]]
        return _noted(bytes(_REGISTERS), [*state, hashed])

    def merged(self, state: list[int] | bytes, other: list[int] | bytes) -> list[int] | bytes:
        match state, other:
            case bytes(), bytes():
                return bytes(map(max, state, other))
            case bytes(), list():
                return _noted(state, other)
            case list(), bytes():
                return _noted(other, state)
        for each in other:
            state = self._with(state, each)
        return state

    def result(self, state: list[int] | bytes) -> int:
        return _estimate(state) if isinstance(state, bytes) else len(state)


def _noted(registers: bytes, several: Sequence[int]) -> bytes:
    """The place is in the first bits; what is kept is how many zeros the others begin with, at most."""
    changed: bytearray | None = None
    for hashed in several:
        place = hashed >> _REST_BITS
        zeros = _REST_BITS - (hashed & ((1 << _REST_BITS) - 1)).bit_length() + 1
        if zeros > (registers if changed is None else changed)[place]:
            changed = changed or bytearray(registers)
            changed[place] = zeros
    return registers if changed is None else bytes(changed)


def _estimate(registers: bytes) -> int:
    empty = registers.count(0)
    raw = _ALPHA * _REGISTERS * _REGISTERS / sum(2.0**-each for each in registers)
    if raw <= 2.5 * _REGISTERS and empty:
        return round(_REGISTERS * math.log(_REGISTERS / empty))
    return round(raw)
