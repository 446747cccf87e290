"""Folds that keep values: lists, sets, the largest, the first and the last, how often each came."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.serdes import values as v
from ottla.streams.expressions.folds import OfValues, same, typed_again

if TYPE_CHECKING:
    from ottla.streams.expressions.aggregates import BoundAggregate

MOST_KEYS: Final = 1_000
"""Of a histogram; what comes later under another key is ignored."""


def _holds(items: Sequence[Any], wanted: Any) -> bool:
    return any(same(each, wanted) for each in items)


class CollectList(OfValues):
    """In the order of arrival, nulls too. Until the limit."""

    def initial(self) -> list[Any]:
        return []

    def add(self, state: list[Any], inputs: Any) -> list[Any]:
        return self.plus(state, self.given(inputs))

    def undo(self, state: list[Any], inputs: Any) -> list[Any]:
        """The last one that is equal goes."""
        given = self.given(inputs)
        for place in range(len(state) - 1, -1, -1):
            if same(state[place], given):
                return [*state[:place], *state[place + 1 :]]
        return state

    def plus(self, state: list[Any], given: Any) -> list[Any]:
        limit = self._options.get("limit")
        return state if limit is not None and len(state) >= limit else [*state, given]

    def merged(self, state: list[Any], other: list[Any]) -> list[Any]:
        for each in other:
            state = self.plus(state, each)
        return state

    def resume(self, result: Any) -> Any:
        return [] if result is None else super().resume(result)


class CollectSet(CollectList):
    def plus(self, state: list[Any], given: Any) -> list[Any]:
        return state if _holds(state, given) else super().plus(state, given)


class Latest(OfValues):
    """The state is the list of the last ones."""

    def __init__(self, bound: "BoundAggregate") -> None:
        super().__init__(bound)
        self._many = self._options.get("n")
        self._size = self._many or 1

    def initial(self) -> list[Any]:
        return []

    def add(self, state: list[Any], inputs: Any) -> list[Any]:
        given = self.given(inputs)
        return state if given is None and self._options["ignore_nulls"] else self.plus(state, given)

    def plus(self, state: list[Any], given: Any) -> list[Any]:
        return [*state, given][-self._size :]

    def merged(self, state: list[Any], other: list[Any]) -> list[Any]:
        return [*state, *other][-self._size :]

    def result(self, state: list[Any]) -> Any:
        if self._many is not None:
            return state
        return state[0] if state else None

    def resume(self, result: Any) -> list[Any]:
        if result is None:
            return []
        known = result if self._plain else typed_again(result, self._type)
        return known if self._many is not None else [known]


class Earliest(Latest):
    """Where a null may be the first one, its result does not tell it from nothing."""

    def plus(self, state: list[Any], given: Any) -> list[Any]:
        return state if len(state) == self._size else [*state, given]

    def merged(self, state: list[Any], other: list[Any]) -> list[Any]:
        return [*state, *other][: self._size]


class TopK(OfValues):
    """The largest first. With more columns the items are structs, whose first field is what is compared."""

    def __init__(self, bound: "BoundAggregate") -> None:
        super().__init__(bound)
        self._k = self._options["k"]
        self._columns = [(f"col{place}", each.evaluator()) for place, each in enumerate(bound.arguments[1:])]

    def initial(self) -> list[Any]:
        return []

    def given(self, inputs: Any) -> Any:
        compared = super().given(inputs)
        if compared is None or not self._columns:
            return compared
        return {"sort_col": compared, **{name: evaluate(inputs) for name, evaluate in self._columns}}

    def _order(self, item: Any) -> Any:
        return v.order_key(item["sort_col"] if self._columns else item)

    def plus(self, state: list[Any], given: Any) -> list[Any]:
        """Behind those that are equal."""
        order = self._order(given)
        place = len(state)
        while place and self._order(state[place - 1]) < order:
            place -= 1
        return state if place >= self._k else [*state[:place], given, *state[place:]][: self._k]

    def merged(self, state: list[Any], other: list[Any]) -> list[Any]:
        for each in other:
            state = self.plus(state, each)
        return state

    def resume(self, result: Any) -> Any:
        return [] if result is None else super().resume(result)


class TopKDistinct(TopK):
    def plus(self, state: list[Any], given: Any) -> list[Any]:
        return state if _holds(state, given) else super().plus(state, given)


class Histogram(OfValues):
    def initial(self) -> dict[str, int]:
        return {}

    def plus(self, state: dict[str, int], given: str) -> dict[str, int]:
        if given not in state and len(state) >= MOST_KEYS:
            return state
        return {**state, given: state.get(given, 0) + 1}

    def minus(self, state: dict[str, int], given: str) -> dict[str, int]:
        left = state.get(given, 0) - 1
        if left > 0:
            return {**state, given: left}
        return {name: count for name, count in state.items() if name != given}

    def merged(self, state: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        united = dict(state)
        for name, count in other.items():
            if name in united or len(united) < MOST_KEYS:
                united[name] = united.get(name, 0) + count
        return united

    def resume(self, result: Any) -> Any:
        return result or {}


class Attribute(OfValues):
    """The state is every value, with how often it came."""

    def initial(self) -> list[Any]:
        return []

    def plus(self, state: list[Any], given: Any) -> list[Any]:
        return self._changed(state, given, 1)

    def minus(self, state: list[Any], given: Any) -> list[Any]:
        return self._changed(state, given, -1)

    @staticmethod
    def _changed(state: list[Any], given: Any, by: int) -> list[Any]:
        for place, (value, count) in enumerate(state):
            if same(value, given):
                changed = [[value, count + by]] if count + by > 0 else []
                return [*state[:place], *changed, *state[place + 1 :]]
        return [*state, [given, by]] if by > 0 else state

    def merged(self, state: list[Any], other: list[Any]) -> list[Any]:
        for value, count in other:
            state = self._changed(state, value, count)
        return state

    def result(self, state: list[Any]) -> Any:
        return state[0][0] if len(state) == 1 else None
