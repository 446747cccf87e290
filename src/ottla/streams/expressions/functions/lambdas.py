"""Functions that take functions: `transform(value["prices"], lambda price: price * 2)`.

A lambda is called once, when the expression is written, with expressions that stand for its parameters; what it returns
is part of the expression. Its conditions are those of expressions: one that is null is not true. For an array a lambda
has one parameter, for a map two (key, value), and `transform` takes two lambdas, for new keys and new values.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.serdes.types import BOOLEAN, STRING, Type, array_of, common, map_of
from ottla.streams.expressions.bound import Bound, Build, Evaluator, Refused, Spark
from ottla.streams.expressions.functions.declare import anything, boolean, coerced, element, family, list_or_map, text
from ottla.streams.expressions.functions.maps import entries_column

__all__ = ["all_", "any_", "filter_", "reduce_", "transform"]
declare: Final = family("lambdas")


def _part_types(node: Bound) -> list[Type]:
    """Of what a lambda is given for each part."""
    kind = list_or_map(node).type
    return [STRING, element(kind)] if kind.name == "map" else [element(kind)]


def _lambda_types(args: Sequence[Bound]) -> Sequence[Sequence[Type]]:
    return [_part_types(args[0])]


def _of(node: Bound, body: Bound) -> Bound:
    """The lambda with a converted body."""
    return Bound("lambda", body.type, (body,), node.options)


def _parts(given: Any) -> list[tuple[Any, ...]]:
    """What a lambda is called with: items one by one, entries in the order of their keys."""
    return [(key, given[key]) for key in sorted(given)] if isinstance(given, dict) else [(item,) for item in given]


def _per_part(work: Callable[[Any, Callable[..., Any]], Any]) -> Build:
    """`work` is given the array or map, and what the lambda makes of one part."""

    def build(_: Bound, args: list[Evaluator]) -> Evaluator:
        parts, function = args

        def evaluate(inputs: Any) -> Any:
            given = parts(inputs)
            return None if given is None else work(given, lambda *part: function(inputs, *part))

        return evaluate

    return build


# ---- transform


def _transform_types(args: Sequence[Bound]) -> Sequence[Sequence[Type]]:
    kinds = _part_types(args[0])
    return [kinds] * len(kinds)


def _transform(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    given = list_or_map(args[0])
    if given.type.name == "array":
        made = anything(args[1].args[0])
        return Bound(name, array_of(made.type), (given, _of(args[1], made)), options)
    key, made = text(args[1].args[0]), anything(args[2].args[0])
    return Bound(name, map_of(made.type), (given, _of(args[1], key), _of(args[2], made)), options)


def _build_transform(_: Bound, args: list[Evaluator]) -> Evaluator:
    parts, *functions = args

    def evaluate(inputs: Any) -> Any:
        given = parts(inputs)
        if given is None:
            return None
        made = [[function(inputs, *part) for function in functions] for part in _parts(given)]
        if len(functions) == 1:
            return [each for (each,) in made]
        found = {key: each for key, each in made}
        return None if len(found) < len(made) or None in found else found

    return evaluate


def _transform_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, given = spark.F, args[0]
    if node.type.name == "array":
        return F.transform(given, args[1])
    made = F.transform(
        entries_column(F, given),
        lambda e: F.struct(args[1](e["K"], e["V"]).alias("K"), args[2](e["K"], e["V"]).alias("V")),
    )
    keys = F.transform(made, lambda e: e["K"])
    sound = F.forall(keys, lambda key: key.isNotNull()) & (F.array_size(F.array_distinct(keys)) == F.array_size(keys))
    return F.when(sound, F.map_from_entries(made))


transform: Final = declare(
    "transform",
    "given, function, values=None",
    _transform,
    build=_build_transform,
    typed_column=_transform_column,
    lambda_types=_transform_types,
    about="What the function makes of each item; of a map `transform(map, keys, values)`, null if new keys are equal.",
)


# ---- conditions


def _condition(node: Bound) -> Bound:
    return _of(node, boolean(node.args[0]))


def _filter(given: Any, condition: Callable[..., Any]) -> Any:
    if isinstance(given, dict):
        return {key: each for key, each in given.items() if condition(key, each) is True}
    return [item for item in given if condition(item) is True]


filter_: Final = declare(
    "filter",
    "given, condition",
    lambda name, args, options: Bound(
        name, list_or_map(args[0]).type, (list_or_map(args[0]), _condition(args[1])), options
    ),
    build=_per_part(_filter),
    typed_column=lambda spark, node, args: (
        spark.F.map_filter(*args) if node.type.name == "map" else spark.F.filter(*args)
    ),
    lambda_types=_lambda_types,
    about="The items, or entries, for which the condition is true.",
)


def _tested(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, BOOLEAN, (list_or_map(args[0]), _condition(args[1])), options)


def _tested_column(function: str) -> Callable[[Spark, Bound, list[Any]], Any]:
    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        F, (given, condition) = spark.F, args
        of_map = node.args[0].type.name == "map"

        def test(part: Any) -> Any:
            return F.coalesce(condition(part["K"], part["V"]) if of_map else condition(part), F.lit(False))

        return getattr(F, function)(entries_column(F, given) if of_map else given, test)

    return column


any_: Final = declare(
    "any",
    "given, condition",
    _tested,
    build=_per_part(lambda given, condition: any(condition(*part) is True for part in _parts(given))),
    typed_column=_tested_column("exists"),
    lambda_types=_lambda_types,
    about="Whether the condition is true for one of the items, or entries.",
)
all_: Final = declare(
    "all",
    "given, condition",
    _tested,
    build=_per_part(lambda given, condition: all(condition(*part) is True for part in _parts(given))),
    typed_column=_tested_column("forall"),
    lambda_types=_lambda_types,
    about="Whether the condition is true for every item, or entry.",
)


# ---- reduce


def _state_type(given: Bound, initial: Bound) -> Type:
    """A beginning of 0 is meant to be as wide as the numbers that are added to it."""
    own = element(list_or_map(given).type)
    joined = common(initial.type, own) if initial.type.is_number and own.is_number else None
    return joined or anything(initial).type


def _reduce_types(args: Sequence[Bound]) -> Sequence[Sequence[Type]]:
    given, initial = args
    return [[_state_type(given, initial), *_part_types(given)]]


def _reduce(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    given, initial, function = args
    kind = _state_type(given, initial)
    body = function.args[0]
    if common(kind, body.type) != kind:
        raise Refused(f"it begins with {kind}, but the function makes {body.type} of it; cast one of them")
    return Bound(name, kind, (list_or_map(given), coerced(initial, kind), _of(function, coerced(body, kind))), options)


def _build_reduce(_: Bound, args: list[Evaluator]) -> Evaluator:
    parts, initial, function = args

    def evaluate(inputs: Any) -> Any:
        state, given = initial(inputs), parts(inputs)
        if state is None or given is None:
            return state
        for part in _parts(given):
            state = function(inputs, state, *part)
        return state

    return evaluate


def _reduce_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (given, initial, function) = spark.F, args
    if node.args[0].type.name == "map":
        made = F.aggregate(entries_column(F, given), initial, lambda state, e: function(state, e["K"], e["V"]))
    else:
        made = F.aggregate(given, initial, function)
    return F.when(given.isNull(), initial).when(initial.isNotNull(), made)


reduce_: Final = declare(
    "reduce",
    "given, initial, function",
    _reduce,
    build=_build_reduce,
    typed_column=_reduce_column,
    nulls="the initial value for the array or map, null for the initial value",
    lambda_types=_reduce_types,
    about="What is left when the function has put each item (or key and value), one after another, to what it made of "
    "those before.",
)
