"""What an expression can call: per function, which types it takes and gives, and how it runs on plain Python values.

Binding an expression to the types of its inputs gives a tree of `Bound` nodes in which every conversion is written out,
so that Python (here) and Spark (`run.expression_columns`) have nothing left to decide and cannot decide differently.
"""

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.serdes import values as v
from ottla.serdes.types import ANY, BINARY, BOOLEAN, DOUBLE, INT, LONG, NULL, STRING, Type, array_of, common
from ottla.streams.errors import NeedsSparkError
from ottla.streams.record import Headers


class Inputs(NamedTuple):
    """What an expression can see of one record. Anything else with these attributes will do as well."""

    key: Any = None
    value: Any = None
    timestamp: int = -1
    headers: Headers = ()
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    left: Any = None
    """In joins: the values of the two sides."""
    right: Any = None


Evaluator: TypeAlias = Callable[[Any], Any]
"""Takes Inputs, gives the value."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A call with types: its arguments have exactly the types that the function wants."""

    function: str
    type: Type
    args: tuple["Bound", ...] = ()
    options: tuple[Any, ...] = ()
    """What is fixed when the expression is written: names, patterns, positions."""

    def evaluator(self) -> Evaluator:
        return _EVALUATORS[self.function](self, [argument.evaluator() for argument in self.args])


class Refused(Exception):
    """A function cannot take these arguments. Whoever binds says which expression it was."""


Rule: TypeAlias = Callable[[str, Sequence[Bound], tuple[Any, ...]], Bound]

FIXED_TYPES: Final = {"timestamp": LONG, "partition": INT, "offset": LONG, "topic": STRING}
"""Of the leaves whose type does not depend on serdes."""


# ---- conversions


def coerced(node: Bound, wanted: Type) -> Bound:
    """The node as a value of the wanted type. A literal is converted on the spot."""
    if node.type == wanted:
        return node
    if node.type == NULL:
        return Bound("lit", wanted, options=(None,))
    if (node.type.name, wanted.name) not in _CASTS:
        raise Refused(f"{node.type} cannot become {wanted}")
    cast = Bound("cast", wanted, (node,))
    if node.function == "lit":
        return Bound("lit", wanted, options=(cast.evaluator()(None),))
    return cast


def _as_string(node: Bound) -> Bound:
    if node.type not in (STRING, ANY, NULL):
        raise Refused(f"a string is needed, not {node.type}; use .cast('string')")
    return coerced(node, STRING)


def _as_boolean(node: Bound) -> Bound:
    if node.type not in (BOOLEAN, ANY, NULL):
        raise Refused(f"a boolean is needed, not {node.type}; write a comparison")
    return coerced(node, BOOLEAN)


def _as_number(node: Bound) -> Bound:
    if node.type in (ANY, NULL):
        return coerced(node, DOUBLE)
    if not node.type.is_number:
        raise Refused(f"a number is needed, not {node.type}; use .cast('double') or .cast('long')")
    return node


def _unified(args: Sequence[Bound]) -> list[Bound]:
    """All in one type."""
    kind = NULL
    for node in args:
        joined = common(kind, node.type)
        if joined is None:
            raise Refused(f"{kind} and {node.type} do not go together; cast one of them")
        kind = joined
    return [coerced(node, kind) for node in args]


# ---- rules: types of the arguments -> Bound


def _comparison(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if any(node.type == NULL for node in args):
        raise Refused("a comparison with None is never true; use .is_null() or .is_not_null()")
    if all(node.type == ANY for node in args):
        raise Refused("neither side has a known type; cast one of them, or give the JSON serde a schema")
    for node in args:
        if node.type.name in {"array", "struct", "windowed"}:
            raise Refused(f"{node.type} cannot be compared; compare its fields")
    return Bound(name, BOOLEAN, tuple(_unified(args)), options)


def _isin(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if all(node.type in (ANY, NULL) for node in args):
        raise Refused("no side has a known type; cast one of them")
    return Bound(name, BOOLEAN, tuple(_unified(args)), options)


def _logic(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, BOOLEAN, tuple(map(_as_boolean, args)), options)


def _addition(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if any(node.type == STRING for node in args):
        return _concat("concat", args, options)
    if all(node.type == ANY for node in args):
        raise Refused("neither side has a known type, so + may mean a sum or a text; cast one of them")
    return _arithmetic(name, args, options)


def _arithmetic(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    numbers = _unified(list(map(_as_number, args)))
    return Bound(name, numbers[0].type, tuple(numbers), options)


def _division(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, DOUBLE, tuple(coerced(_as_number(node), DOUBLE) for node in args), options)


def _to_long(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    number = _as_number(args[0])
    return coerced(number, LONG) if number.type.is_integer else Bound(name, LONG, (number,), options)


def _round(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    number = _as_number(args[0])
    return number if number.type.is_integer else Bound(name, DOUBLE, (number,), options)


def _null_test(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, BOOLEAN, tuple(args), options)


def _of_strings(result: Type) -> Rule:
    def rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
        return Bound(name, result, tuple(map(_as_string, args)), options)

    return rule


_concat: Final = _of_strings(STRING)


def _cast(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    (node,), (wanted,) = args, options
    return coerced(node, wanted)


def _field(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    (base,), (field,) = args, options
    if base.type == ANY:
        return Bound("json_field", ANY, (base,), options)
    if base.type.name == "windowed":
        kind = {"key": base.type.element, "start": LONG, "end": LONG}.get(field)
        known = "key, start, end"
    elif base.type.name == "struct":
        kind = base.type.field(field)
        known = ", ".join(name for name, _ in base.type.fields)
    else:
        raise Refused(f"{base.type} has no fields; read the topic with a JSON serde")
    if kind is None:
        raise Refused(f"there is no field {field!r}; there are {known}")
    return Bound("window_field" if base.type.name == "windowed" else name, kind, (base,), options)


def _item(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    (base,) = args
    if base.type == ANY:
        return Bound("json_item", ANY, (base,), options)
    if base.type.name != "array" or base.type.element is None:
        raise Refused(f"{base.type} is no array")
    return Bound(name, base.type.element, (base,), options)


def _case(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """Arguments: condition, result, condition, result, ..., otherwise."""
    conditions = list(map(_as_boolean, args[:-1:2]))
    results = _unified([*args[1::2], args[-1]])
    pairs = [node for pair in zip(conditions, results, strict=False) for node in pair]
    return Bound(name, results[0].type, (*pairs, results[-1]), options)


def _same(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    nodes = _unified(args)
    return Bound(name, nodes[0].type, tuple(nodes), options)


def _ordered(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    bound = _same(name, args, options)
    if bound.type.name in {"array", "struct", "windowed", "any"}:
        raise Refused(f"{bound.type} has no order; cast it")
    return bound


def _struct(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    nodes = tuple(map(_typed, args))
    fields = tuple((field, node.type) for field, node in zip(options, nodes, strict=True))
    return Bound(name, Type("struct", fields=fields), nodes, options)


def _typed(node: Bound) -> Bound:
    """A bare None has to be a null of some type in a struct or an array."""
    return coerced(node, STRING) if node.type == NULL else node


def _array(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    nodes = tuple(map(_typed, _unified(args)))
    return Bound(name, array_of(nodes[0].type if nodes else STRING), nodes, options)


def _escape(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    function, returned = options
    return Bound(name, returned, tuple(args), (function,))


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _comparison),
    **dict.fromkeys(("and", "or", "not"), _logic),
    **dict.fromkeys(("sub", "mul", "mod", "negate", "abs"), _arithmetic),
    **dict.fromkeys(("floor", "ceil"), _to_long),
    **dict.fromkeys(("is_null", "is_not_null"), _null_test),
    **dict.fromkeys(("lower", "upper", "trim", "substr", "replace", "concat"), _concat),
    **dict.fromkeys(("contains", "startswith", "endswith", "rlike"), _of_strings(BOOLEAN)),
    **dict.fromkeys(("least", "greatest"), _ordered),
    "add": _addition,
    "div": _division,
    "round": _round,
    "isin": _isin,
    "cast": _cast,
    "field": _field,
    "item": _item,
    "length": _of_strings(INT),
    "split": _of_strings(array_of(STRING)),
    "case": _case,
    "coalesce": _same,
    "struct": _struct,
    "array": _array,
    "spark": _escape,
}


def checked_pattern(text: str) -> "re.Pattern[str]":
    r"""A regular expression that Python and Java read alike, compiled.

    \w, \d, \s and (?i) know ASCII only, as in Java. What means something else on either side is refused. Left to the
    writer: `.` and `$` treat \r and the Unicode line ends as ends of line in Java alone.
    """
    for construct, reason in _NOT_COMMON:
        if construct.search(text):
            raise ValueError(f"the pattern {text!r} has {reason}, which Python and Java do not share")
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise ValueError(f"the pattern {text!r} cannot be used: {error}") from error


_UNESCAPED: Final = r"(?<!\\)(?:\\\\)*"
_NOT_COMMON: Final = (
    (re.compile(_UNESCAPED + r"\(\?P"), "a (?P...) group"),
    (re.compile(_UNESCAPED + r"\(\?(?:#|\()"), "a comment or a conditional group"),
    (re.compile(r"&&"), "&&"),
    (re.compile(_UNESCAPED + r"\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*\["), "a [ inside a character class"),
    (re.compile(_UNESCAPED + r"\\[zZGRXhHvVQEpPkNuU]"), "an escape like \\p, \\Z, \\h or \\u"),
)


# ---- evaluation on plain Python values


def _strict(function: Callable[..., Any]) -> Callable[[Bound, list[Evaluator]], Evaluator]:
    """None in, None out."""

    def build(node: Bound, args: list[Evaluator]) -> Evaluator:
        return _one(function, *args) if len(args) == 1 else _two(function, node, *args)

    return build


def _one(function: Callable[[Any], Any], argument: Evaluator) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        given = argument(inputs)
        return None if given is None else function(given)

    return evaluate


def _two(function: Callable[[Any, Any], Any], node: Bound, left: Evaluator, right: Evaluator) -> Evaluator:
    if node.args[1].function == "lit" and (constant := node.args[1].options[0]) is not None:
        return _one(lambda given: function(given, constant), left)

    def evaluate(inputs: Any) -> Any:
        first = left(inputs)
        if first is None:
            return None
        second = right(inputs)
        return None if second is None else function(first, second)

    return evaluate


def _by_type(**functions: Callable[..., Any]) -> Callable[[Bound, list[Evaluator]], Evaluator]:
    """The function for the type of the (first) argument; `other` for the rest."""

    def build(node: Bound, args: list[Evaluator]) -> Evaluator:
        kind = node.args[0].type.name
        return _strict(functions.get(kind, functions.get("other", _no_function)))(node, args)

    return build


def _no_function(*args: Any) -> Any:
    raise AssertionError("binding let through a type that no function is for")


def _fitting(function: Callable[..., Any], double: Callable[..., Any]) -> Callable[[Bound, list[Evaluator]], Evaluator]:
    return _by_type(
        int=lambda *given: v.fit_int(function(*given)), long=lambda *given: v.fit_long(function(*given)), double=double
    )


def _and(_: Bound, args: list[Evaluator]) -> Evaluator:
    left, right = args

    def evaluate(inputs: Any) -> Any:
        first = left(inputs)
        if first is False:
            return False
        second = right(inputs)
        return False if second is False else None if first is None or second is None else True

    return evaluate


def _or(_: Bound, args: list[Evaluator]) -> Evaluator:
    left, right = args

    def evaluate(inputs: Any) -> Any:
        first = left(inputs)
        if first is True:
            return True
        second = right(inputs)
        return True if second is True else None if first is None or second is None else False

    return evaluate


def _evaluate_isin(node: Bound, args: list[Evaluator]) -> Evaluator:
    same = v.equal_doubles if node.args[0].type == DOUBLE else operator.eq
    subject, choices = args[0], args[1:]

    def evaluate(inputs: Any) -> Any:
        given = subject(inputs)
        if given is None:
            return None
        answer: bool | None = False
        for choice in choices:
            other = choice(inputs)
            if other is None:
                answer = None
            elif same(given, other):
                return True
        return answer

    return evaluate


def _evaluate_case(_: Bound, args: list[Evaluator]) -> Evaluator:
    pairs = list(zip(args[:-1:2], args[1:-1:2], strict=True))
    otherwise = args[-1]

    def evaluate(inputs: Any) -> Any:
        for condition, result in pairs:
            if condition(inputs) is True:
                return result(inputs)
        return otherwise(inputs)

    return evaluate


def _evaluate_coalesce(_: Bound, args: list[Evaluator]) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        for argument in args:
            given = argument(inputs)
            if given is not None:
                return given
        return None

    return evaluate


def _evaluate_concat(_: Bound, args: list[Evaluator]) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        parts = [argument(inputs) for argument in args]
        return None if None in parts else "".join(parts)

    return evaluate


def _evaluate_replace(_: Bound, args: list[Evaluator]) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        parts = [argument(inputs) for argument in args]
        return None if None in parts else v.replaced(*parts)

    return evaluate


def _evaluate_struct(node: Bound, args: list[Evaluator]) -> Evaluator:
    fields = list(zip(node.options, args, strict=True))
    return lambda inputs: {name: argument(inputs) for name, argument in fields}


def _evaluate_window_field(node: Bound, args: list[Evaluator]) -> Evaluator:
    field = node.options[0]
    return _one(lambda key: key.key if field == "key" else getattr(key.window, field), args[0])


def _evaluate_header(node: Bound, _: list[Evaluator]) -> Evaluator:
    wanted = node.options[0]

    def evaluate(inputs: Any) -> Any:
        """The last one of that name, as Kafka's `lastHeader`."""
        for name, content in reversed(inputs.headers or ()):
            if name == wanted:
                return content
        return None

    return evaluate


def _evaluate_cast(node: Bound, args: list[Evaluator]) -> Evaluator:
    return _one(_CASTS[node.args[0].type.name, node.type.name], args[0])


def _evaluate_literal(node: Bound, _: list[Evaluator]) -> Evaluator:
    constant = node.options[0]
    return lambda inputs: constant


def _no_spark(node: Bound, _: list[Evaluator]) -> Evaluator:
    raise NeedsSparkError(node.options[0])


def _identity(given: Any) -> Any:
    return given


_CASTS: Final[dict[tuple[str, str], Callable[[Any], Any]]] = {
    ("int", "long"): _identity,
    ("int", "double"): float,
    ("int", "string"): str,
    ("int", "boolean"): bool,
    ("long", "int"): v.fit_int,
    ("long", "double"): float,
    ("long", "string"): str,
    ("long", "boolean"): bool,
    ("double", "int"): lambda given: v.double_to_integer(given, v.INT_MIN, v.INT_MAX),
    ("double", "long"): lambda given: v.double_to_integer(given, v.LONG_MIN, v.LONG_MAX),
    ("double", "string"): v.double_text,
    ("double", "boolean"): bool,
    ("boolean", "int"): int,
    ("boolean", "long"): int,
    ("boolean", "double"): float,
    ("boolean", "string"): lambda given: "true" if given else "false",
    ("string", "int"): lambda given: v.string_to_integer(given, v.INT_MIN, v.INT_MAX),
    ("string", "long"): lambda given: v.string_to_integer(given, v.LONG_MIN, v.LONG_MAX),
    ("string", "double"): v.string_to_double,
    ("string", "boolean"): v.string_to_boolean,
    ("string", "binary"): lambda given: given.encode(),
    ("binary", "string"): v.binary_to_string,
    ("any", "int"): lambda given: v.json_to_integer(given, v.INT_MIN, v.INT_MAX),
    ("any", "long"): lambda given: v.json_to_integer(given, v.LONG_MIN, v.LONG_MAX),
    ("any", "double"): v.json_to_double,
    ("any", "boolean"): v.json_to_boolean,
    ("any", "string"): v.json_to_string,
}

_EVALUATORS: Final[dict[str, Callable[[Bound, list[Evaluator]], Evaluator]]] = {
    "leaf": lambda node, _: operator.attrgetter(node.options[0]),
    "header": _evaluate_header,
    "lit": _evaluate_literal,
    "eq": _by_type(double=v.equal_doubles, other=operator.eq),
    "ne": _by_type(double=lambda left, right: not v.equal_doubles(left, right), other=operator.ne),
    "lt": _by_type(double=v.less_doubles, other=operator.lt),
    "gt": _by_type(double=lambda left, right: v.less_doubles(right, left), other=operator.gt),
    "le": _by_type(double=lambda left, right: not v.less_doubles(right, left), other=operator.le),
    "ge": _by_type(double=lambda left, right: not v.less_doubles(left, right), other=operator.ge),
    "and": _and,
    "or": _or,
    "not": _strict(operator.not_),
    "add": _fitting(operator.add, operator.add),
    "sub": _fitting(operator.sub, operator.sub),
    "mul": _fitting(operator.mul, operator.mul),
    "negate": _fitting(operator.neg, operator.neg),
    "abs": _fitting(abs, abs),
    "div": _strict(v.divide),
    "mod": _by_type(double=v.remainder_double, other=v.remainder),
    "floor": _strict(lambda given: v.whole(given, math.floor)),
    "ceil": _strict(lambda given: v.whole(given, math.ceil)),
    "round": lambda node, args: _one(lambda given: v.round_half_up(given, node.options[0]), args[0]),
    "is_null": lambda _, args: lambda inputs: args[0](inputs) is None,
    "is_not_null": lambda _, args: lambda inputs: args[0](inputs) is not None,
    "isin": _evaluate_isin,
    "cast": _evaluate_cast,
    "field": lambda node, args: _one(lambda given: given.get(node.options[0]), args[0]),
    "json_field": lambda node, args: _one(lambda given: v.json_field(given, node.options[0]), args[0]),
    "window_field": _evaluate_window_field,
    "item": lambda node, args: _one(lambda given: v.json_item(given, node.options[0]), args[0]),
    "json_item": lambda node, args: _one(lambda given: v.json_item(given, node.options[0]), args[0]),
    "lower": _strict(str.lower),
    "upper": _strict(str.upper),
    "trim": _strict(lambda given: given.strip(" ")),
    "length": _strict(len),
    "substr": lambda node, args: _one(lambda given: v.substring(given, *node.options), args[0]),
    "contains": _strict(operator.contains),
    "startswith": _strict(str.startswith),
    "endswith": _strict(str.endswith),
    "rlike": lambda node, args: _one(lambda given: node.options[0].search(given) is not None, args[0]),
    "split": lambda node, args: _one(lambda given: v.split(given, node.options[0]), args[0]),
    "replace": _evaluate_replace,
    "concat": _evaluate_concat,
    "case": _evaluate_case,
    "coalesce": _evaluate_coalesce,
    "least": lambda _, args: lambda inputs: v.extreme([each(inputs) for each in args], largest=False),
    "greatest": lambda _, args: lambda inputs: v.extreme([each(inputs) for each in args], largest=True),
    "struct": _evaluate_struct,
    "array": lambda _, args: lambda inputs: [each(inputs) for each in args],
    "spark": _no_spark,
}

HEADER_TYPE: Final = BINARY
