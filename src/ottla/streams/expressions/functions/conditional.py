"""A choice between values: by condition, by null, by order, by place."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from ottla.serdes import values as v
from ottla.serdes.types import INT, STRING
from ottla.streams.expressions.bound import Bound, Evaluator, Spark
from ottla.streams.expressions.functions.declare import boolean, family, ordered, same, takes, text, unified, whole

__all__ = ["coalesce", "elt", "field_position", "greatest", "ifnull", "least", "nullif"]
declare: Final = family("conditional")


def _case(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """Arguments: condition, result, condition, result, ..., otherwise."""
    conditions = list(map(boolean, args[:-1:2]))
    results = unified([*args[1::2], args[-1]])
    pairs = [node for pair in zip(conditions, results, strict=False) for node in pair]
    return Bound(name, results[0].type, (*pairs, results[-1]), options)


def _build_case(_: Bound, args: list[Evaluator]) -> Evaluator:
    pairs = list(zip(args[:-1:2], args[1:-1:2], strict=True))
    otherwise = args[-1]

    def evaluate(inputs: Any) -> Any:
        for condition, result in pairs:
            if condition(inputs) is True:
                return result(inputs)
        return otherwise(inputs)

    return evaluate


def _case_column(spark: Spark, _: Bound, args: list[Any]) -> Any:
    pairs = list(zip(args[:-1:2], args[1:-1:2], strict=True))
    (condition, result), more = pairs[0], pairs[1:]
    return reduce(lambda case, pair: case.when(*pair), more, spark.F.when(condition, result)).otherwise(args[-1])


declare(
    "case",
    "*branches",
    _case,
    build=_build_case,
    typed_column=_case_column,
    nulls="a condition that is null is not true",
    about="`when(condition, result).when(...).otherwise(...)`: the result of the first condition that is true.",
)


def _build_coalesce(_: Bound, args: list[Evaluator]) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        for argument in args:
            given = argument(inputs)
            if given is not None:
                return given
        return None

    return evaluate


coalesce: Final = declare(
    "coalesce",
    "first, *others",
    same,
    build=_build_coalesce,
    column=lambda F, *args: F.coalesce(*args),
    nulls="the next one",
    about="The first that is not null.",
)
ifnull: Final = declare(
    "ifnull",
    "subject, otherwise",
    same,
    build=_build_coalesce,
    column=lambda F, *args: F.coalesce(*args),
    nulls="the other one",
    about="The subject, or the other one if it is null.",
)


def _unless_equal(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return same(name, ordered("eq", args, ()).args, options)


nullif: Final = declare(
    "nullif",
    "subject, unwanted",
    _unless_equal,
    lambda given, unwanted: None if given is not None and v.order_key(given) == v.order_key(unwanted) else given,
    column=lambda F, given, unwanted: F.when(given.eqNullSafe(unwanted), None).otherwise(given),
    nulls="the subject",
    about="The subject, or null if it equals the other one.",
)
least: Final = declare(
    "least",
    "first, *others",
    ordered,
    lambda *given: v.extreme(given, largest=False),
    column=lambda F, *args: args[0] if len(args) == 1 else F.least(*args),
    nulls="left out",
    about="The smallest of all.",
)
greatest: Final = declare(
    "greatest",
    "first, *others",
    ordered,
    lambda *given: v.extreme(given, largest=True),
    column=lambda F, *args: args[0] if len(args) == 1 else F.greatest(*args),
    nulls="left out",
    about="The largest of all; NaN is above every number.",
)


def _elt(place: int | None, *choices: Any) -> Any:
    return choices[place - 1] if place is not None and 1 <= place <= len(choices) else None


def _elt_column(F: Any, place: Any, *choices: Any) -> Any:
    return F.when((place >= 1) & (place <= len(choices)), F.get(F.array(*choices), place - 1))


elt: Final = declare(
    "elt",
    "place, *choices",
    takes(whole, text, gives=STRING),
    _elt,
    column=_elt_column,
    nulls="null for the place; a choice may be null",
    about="The choice at that place, the first is 1; null if there is none.",
)


def _field_position(given: Any, *choices: Any) -> int:
    return choices.index(given) + 1 if given is not None and given in choices else 0


def _field_position_column(F: Any, given: Any, *choices: Any) -> Any:
    cases = [F.when(given == choice, F.lit(place)) for place, choice in enumerate(choices, 1)]
    return F.coalesce(*cases, F.lit(0))


field_position: Final = declare(
    "field_position",
    "text, *choices",
    takes(text, gives=INT),
    _field_position,
    column=_field_position_column,
    nulls="0",
    about="At which place the text is among the choices, the first is 1; 0 if it is none of them. ksqlDB's FIELD.",
)
