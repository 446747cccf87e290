"""Expressions that tell when they have no result: ksqlDB makes null of an error, and writes it to the log.

A function that fails gives null, by the rules of expressions. Whether a null is an answer or an error is known by the
function: `FALLIBLE` are those that answer every question that has no null in it, or fail.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ottla.streams.expressions.bound import FUNCTIONS, Bound, Cells, Evaluator, built
from ottla.streams.expressions.functions.declare import FAILURES

Notice = Callable[[str], None]
"""Is told what had no result, without its values."""

_LEAVES: Final = frozenset({"leaf", "header", "headers", "lit", "variable", "lambda"})
_SIGNS: Final = {
    "ksql_divide": "/",
    "ksql_mod": "%",
    "ksql_add": "+",
    "ksql_subtract": "-",
    "ksql_multiply": "*",
}
_CASTS: Final = {
    "cast",
    "ksql_to_boolean",
    "ksql_to_date",
    "ksql_to_int",
    "ksql_to_long",
    "ksql_to_time",
    "ksql_to_timestamp",
}
_OTHERS: Final = {
    "convert_tz",
    "double_from_bytes",
    "encode",
    "extract_json_field",
    "format_date",
    "format_time",
    "format_timestamp",
    "from_bytes",
    "generate_series",
    "geo_distance",
    "int_from_bytes",
    "long_from_bytes",
    "mask_keep_left",
    "mask_keep_right",
    "mask_left",
    "mask_right",
    "parse_date",
    "parse_time",
    "parse_timestamp",
    "python_call",
    "to_bytes",
}
FALLIBLE: Final = frozenset({*_SIGNS, *_CASTS, *_OTHERS})


def is_fallible(node: Bound) -> bool:
    """Whether it, or a part of it, may have no result."""
    return _may_fail(node) or any(map(is_fallible, node.args))


def _may_fail(node: Bound) -> bool:
    if node.function in ("ksql_add", "ksql_subtract", "ksql_multiply"):
        return node.type.name == "decimal"  # integers wrap, doubles become infinite
    if node.function in ("ksql_divide", "ksql_mod"):
        return node.type.name != "double" and not _is_number_but_zero(node.args[1])
    if node.function == "cast":
        return node.args[0].type.name in ("string", "decimal", "any") or node.type.name == "decimal"
    return node.function in FALLIBLE


def _is_number_but_zero(node: Bound) -> bool:
    return node.function == "lit" and bool(node.options[0]) and node.type.name != "decimal"


def watched(node: Bound, notice: Notice, cells: Cells | None = None) -> Evaluator:
    """What `Bound.evaluator` gives, and tells of each call that had no result. Inside lambdas nothing is told."""
    if node.function in _LEAVES or not is_fallible(node):
        return node.evaluator(cells)
    around = {} if cells is None else cells
    if node.function != "python_call" and not _may_fail(node):
        return built(node, around, lambda each, inner: watched(each, notice, inner))
    args = [watched(each, notice, around) for each in node.args]
    if node.function == "python_call":
        return FUNCTIONS[node.function].build(_telling_call(node, notice), args)
    return _telling(node, args, notice)


def _telling_call(node: Bound, notice: Notice) -> Bound:
    """Code of users may answer with null: it has failed if it raised."""
    call, kind = node.options

    def telling(*given: Any) -> Any:
        try:
            return call(*given)
        except FAILURES:
            notice(f"{call.name} has no result")
            raise

    return replace(node, options=(telling, kind))


def _telling(node: Bound, args: list[Evaluator], notice: Notice) -> Evaluator:
    constants = [each.options[0] if each.function == "lit" else None for each in node.args]
    given = list(constants)

    def remembered(place: int, argument: Evaluator) -> Evaluator:
        def evaluate(*inputs: Any) -> Any:
            given[place] = argument(*inputs)
            return given[place]

        return evaluate

    run = FUNCTIONS[node.function].build(node, [remembered(place, each) for place, each in enumerate(args)])
    words = _words(node)

    def evaluate(inputs: Any) -> Any:
        given[:] = constants
        found = run(inputs)
        if found is None and None not in given:
            notice(words)
        return found

    return evaluate


def _words(node: Bound) -> str:
    kinds = [str(each.type) for each in node.args]
    if node.function in _SIGNS:
        return f"{f' {_SIGNS[node.function]} '.join(kinds)} has no result"
    if node.function in _CASTS:
        return f"CAST of {kinds[0]} to {node.type} has no result"
    return f"{node.function.upper()}({', '.join(kinds)}) has no result"
