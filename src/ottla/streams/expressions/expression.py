"""The language of expressions: leaves, operators and functions over one record, and aggregates over many."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ottla.serdes import values as v
from ottla.serdes.types import BINARY, BOOLEAN, DOUBLE, INT, LONG, NULL, STRING, Type, parse_type, struct_of
from ottla.streams.expressions.folds import FOLDS, FoldFunctions, StructFold
from ottla.streams.expressions.functions import (
    FIXED_TYPES,
    HEADER_TYPE,
    RULES,
    Bound,
    Evaluator,
    Inputs,
    Refused,
    checked_pattern,
)
from ottla.streams.expressions.text import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

__all__ = [
    "Aggregate",
    "BoundAggregate",
    "Expression",
    "ExpressionError",
    "Inputs",
    "aggregates",
    "array",
    "avg",
    "coalesce",
    "concat",
    "count",
    "greatest",
    "header",
    "key",
    "least",
    "left",
    "lit",
    "max_",
    "min_",
    "offset",
    "partition",
    "right",
    "spark",
    "struct",
    "sum_",
    "timestamp",
    "topic",
    "value",
    "when",
]

CAST_TYPES: Final = (LONG, INT, DOUBLE, STRING, BOOLEAN, BINARY)


class ExpressionError(TypeError):
    """An expression that cannot work on the types it is given. The message names the part that is wrong."""


class Expression:
    """A formula over one record. Immutable; operators make new ones."""

    __slots__ = ("args", "function", "options")

    function: str
    args: "tuple[Expression, ...]"
    options: tuple[Any, ...]

    def __init__(self, function: str, args: "Sequence[Expression]" = (), options: Sequence[Any] = ()) -> None:
        self.function = function
        self.args = tuple(args)
        self.options = tuple(options)

    # ---- what can be asked of it

    def bind(self, types: Mapping[str, Type]) -> Bound:
        """With types: of `key` and `value`, or of `left` and `right` in a join. Raises ExpressionError."""
        if self.function == "lit":
            return Bound("lit", _literal_type(self.options[0]), options=self.options)
        if self.function == "header":
            return Bound("header", HEADER_TYPE, options=self.options)
        if self.function == "leaf":
            return self._bind_leaf(types)
        args = [argument.bind(types) for argument in self.args]
        try:
            return RULES[self.function](self.function, args, self.options)
        except Refused as refused:
            raise ExpressionError(f"{self!r}: {refused}") from None

    def _bind_leaf(self, types: Mapping[str, Type]) -> Bound:
        (name,) = self.options
        kind = types.get(name) or FIXED_TYPES.get(name)
        if kind is None:
            known = ", ".join([*types, *FIXED_TYPES])
            raise ExpressionError(f"{name}: there is no {name} here; there are {known}")
        return Bound("leaf", kind, options=self.options)

    def compile(self, types: Mapping[str, Type]) -> Evaluator:
        """A function from `Inputs` to the value, for plain Python."""
        return self.bind(types).evaluator()

    def walk(self) -> "Iterator[Expression]":
        """Itself and all parts."""
        yield self
        for argument in self.args:
            yield from argument.walk()

    def leaves(self) -> frozenset[str]:
        """What it reads of a record: names of leaves, and `headers` if any header."""
        found = [part.options[0] if part.function == "leaf" else "headers" for part in self.walk() if part.is_leaf]
        return frozenset(found)

    @property
    def is_leaf(self) -> bool:
        return self.function in {"leaf", "header"}

    @property
    def needs_spark(self) -> bool:
        """Whether it has a `spark(...)` in it, so that plain Python cannot compute it."""
        return any(part.function == "spark" for part in self.walk())

    # ---- operators

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return _call("eq", self, other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return _call("ne", self, other)

    def __lt__(self, other: object) -> "Expression":
        return _call("lt", self, other)

    def __le__(self, other: object) -> "Expression":
        return _call("le", self, other)

    def __gt__(self, other: object) -> "Expression":
        return _call("gt", self, other)

    def __ge__(self, other: object) -> "Expression":
        return _call("ge", self, other)

    def __and__(self, other: object) -> "Expression":
        return _call("and", self, other)

    def __rand__(self, other: object) -> "Expression":
        return _call("and", other, self)

    def __or__(self, other: object) -> "Expression":
        return _call("or", self, other)

    def __ror__(self, other: object) -> "Expression":
        return _call("or", other, self)

    def __invert__(self) -> "Expression":
        return _call("not", self)

    def __add__(self, other: object) -> "Expression":
        """A sum, or two strings put together."""
        return _call("add", self, other)

    def __radd__(self, other: object) -> "Expression":
        return _call("add", other, self)

    def __sub__(self, other: object) -> "Expression":
        return _call("sub", self, other)

    def __rsub__(self, other: object) -> "Expression":
        return _call("sub", other, self)

    def __mul__(self, other: object) -> "Expression":
        return _call("mul", self, other)

    def __rmul__(self, other: object) -> "Expression":
        return _call("mul", other, self)

    def __truediv__(self, other: object) -> "Expression":
        return _call("div", self, other)

    def __rtruediv__(self, other: object) -> "Expression":
        return _call("div", other, self)

    def __mod__(self, other: object) -> "Expression":
        return _call("mod", self, other)

    def __rmod__(self, other: object) -> "Expression":
        return _call("mod", other, self)

    def __neg__(self) -> "Expression":
        return _call("negate", self)

    def __getitem__(self, name: str | int) -> "Expression":
        """A field of a JSON object, or with a number an item of an array."""
        if isinstance(name, int):
            return self.get(name)
        if not isinstance(name, str):
            raise TypeError(f"a field has a name and an item a number, not {name!r}")
        return Expression("field", (self,), (name,))

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is true or false for each record only: write & | ~ for and, or, not")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self!r} is a formula, there is nothing to iterate over yet")

    def __contains__(self, _: object) -> NoReturn:
        raise TypeError(f"{self!r}: use .contains(...) or .isin(...) instead of `in`")

    # ---- null, choice, type

    def is_null(self) -> "Expression":
        return _call("is_null", self)

    def is_not_null(self) -> "Expression":
        return _call("is_not_null", self)

    def between(self, low: object, high: object) -> "Expression":
        """Both ends included."""
        return (self >= low) & (self <= high)

    def isin(self, *choices: object) -> "Expression":
        """One of these, given one by one or as one list."""
        if len(choices) == 1 and isinstance(choices[0], (list, tuple, set, frozenset)):
            given = choices[0]
            choices = tuple(sorted(given, key=repr)) if isinstance(given, (set, frozenset)) else tuple(given)
        return _call("isin", self, *choices)

    def cast(self, name: str) -> "Expression":
        """To long, int, double, string, boolean or binary. What cannot be converted becomes null."""
        kind = parse_type(name)
        if kind not in CAST_TYPES:
            raise ValueError(f"cast to {name} is not possible; to {', '.join(map(str, CAST_TYPES))} it is")
        return Expression("cast", (self,), (kind,))

    def field(self, path: str) -> "Expression":
        """`field("a.b")` is `["a"]["b"]`."""
        found = self
        for name in path.split("."):
            found = found[name]
        return found

    def get(self, index: int) -> "Expression":
        """An item of an array, the first is 0; null if there is none."""
        return Expression("item", (self,), (index,))

    # ---- strings

    def lower(self) -> "Expression":
        return _call("lower", self)

    def upper(self) -> "Expression":
        return _call("upper", self)

    def trim(self) -> "Expression":
        """Without the blanks (and only blanks) at both ends."""
        return _call("trim", self)

    def length(self) -> "Expression":
        """In characters."""
        return _call("length", self)

    def substr(self, start: int, length: int | None = None) -> "Expression":
        """As in SQL: the first character is number 1, a negative start counts from the end."""
        return Expression("substr", (self,), (start, length))

    def contains(self, part: object) -> "Expression":
        return _call("contains", self, part)

    def startswith(self, part: object) -> "Expression":
        return _call("startswith", self, part)

    def endswith(self, part: object) -> "Expression":
        return _call("endswith", self, part)

    def rlike(self, pattern: str) -> "Expression":
        """Whether a regular expression is found anywhere in it; `checked_pattern` says what Python and Java share."""
        return Expression("rlike", (self,), (checked_pattern(pattern),))

    def replace(self, search: object, replacement: object) -> "Expression":
        """All occurrences of a text (no pattern)."""
        return _call("replace", self, search, replacement)

    def split(self, pattern: str) -> "Expression":
        """An array of the parts between the matches of a regular expression; empty parts stay. "" splits characters."""
        compiled = checked_pattern(pattern)
        if pattern and compiled.search(""):
            # Java would cut characters beyond the basic plane in two.
            raise ValueError(f"the pattern {pattern!r} matches nothing at all, so it cannot split")
        return Expression("split", (self,), (compiled,))

    # ---- numbers

    def abs(self) -> "Expression":
        return _call("abs", self)

    def round(self, places: int = 0) -> "Expression":
        """Half away from zero, as in SQL. Integers stay what they are."""
        if not 0 <= places <= 300:
            raise ValueError(f"round to {places} places is not possible")
        return Expression("round", (self,), (places,))

    def floor(self) -> "Expression":
        return _call("floor", self)

    def ceil(self) -> "Expression":
        return _call("ceil", self)

    __abs__ = abs
    __round__ = round
    __floor__ = floor
    __ceil__ = ceil

    def __repr__(self) -> str:
        return text_of(self)


class Case(Expression):
    """`when(...)`, with more to come. Without otherwise: null."""

    __slots__ = ()

    def when(self, condition: object, result: object) -> "Case":
        return Case("case", (*self.args[:-1], lit(condition), lit(result), self.args[-1]))

    def otherwise(self, result: object) -> Expression:
        return Expression("case", (*self.args[:-1], lit(result)))


def _call(function: str, *args: object) -> Expression:
    return Expression(function, [lit(argument) for argument in args])


# ---- leaves

key: Final = Expression("leaf", options=("key",))
value: Final = Expression("leaf", options=("value",))
timestamp: Final = Expression("leaf", options=("timestamp",))
"""Event time, in milliseconds."""
partition: Final = Expression("leaf", options=("partition",))
offset: Final = Expression("leaf", options=("offset",))
topic: Final = Expression("leaf", options=("topic",))
left: Final = Expression("leaf", options=("left",))
"""In a join: the value of the left side (the stream)."""
right: Final = Expression("leaf", options=("right",))
"""In a join: the value of the right side (the table, or the other stream); null if there is none."""


def header(name: str) -> Expression:
    """The bytes of the last header of that name."""
    return Expression("header", options=(name,))


def lit(constant: object) -> Expression:
    """A constant. An expression stays what it is; a list or a dict becomes an array or a struct."""
    match constant:
        case Expression():
            return constant
        case dict():
            return struct(**constant)
        case list() | tuple():
            return array(*constant)
    if _literal_type(constant) is None:
        raise TypeError(f"{constant!r} cannot be part of an expression")
    return Expression("lit", options=(constant,))


def _literal_type(constant: object) -> Any:
    match constant:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int() if v.INT_MIN <= constant <= v.INT_MAX:
            return INT
        case int() if v.LONG_MIN <= constant <= v.LONG_MAX:
            return LONG
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BINARY
    return None


# ---- functions


def when(condition: object, result: object) -> Case:
    """`when(c, a).when(d, b).otherwise(e)`: the result of the first condition that is true."""
    return Case("case", (lit(condition), lit(result), lit(None)))


def coalesce(*choices: object) -> Expression:
    """The first that is not null."""
    return _call("coalesce", *_at_least_one("coalesce", choices))


def concat(*parts: object) -> Expression:
    """Strings put together; null if any is null."""
    return _call("concat", *_at_least_one("concat", parts))


def least(*choices: object) -> Expression:
    """Nulls do not count."""
    return _call("least", *_at_least_one("least", choices))


def greatest(*choices: object) -> Expression:
    """Nulls do not count; NaN is above every number."""
    return _call("greatest", *_at_least_one("greatest", choices))


def struct(**fields: object) -> Expression:
    """A JSON object."""
    if not fields:
        raise TypeError("struct() needs at least one field: struct(name=expression, ...)")
    return Expression("struct", [lit(part) for part in fields.values()], tuple(fields))


def array(*items: object) -> Expression:
    return _call("array", *items)


def spark(function: "Callable[..., Column]", *args: object, returns: str = "string") -> Expression:
    """For all that is missing here: a function of Spark columns, given those of `args` (of `value` if there are none).

    Say what type it returns. It runs on Spark only: the test driver raises NeedsSparkError, and an application in which
    a Python function stands in its way is refused with a TopologyError.
    """
    return Expression("spark", [lit(each) for each in args] or [value], (function, parse_type(returns)))


def _at_least_one(name: str, args: tuple[object, ...]) -> tuple[object, ...]:
    if not args:
        raise TypeError(f"{name}() needs at least one argument")
    return args


# ---- aggregates


class Aggregate:
    """A count, sum, minimum, maximum or average over the records of a group, or several of them side by side.

    Spark computes it natively. Record by record it is a fold; what is stored and sent on is `result(state)`.
    """

    __slots__ = ("expression", "kind", "parts")

    def __init__(
        self, kind: str, expression: Expression | None = None, parts: "Mapping[str, Aggregate] | None" = None
    ) -> None:
        self.kind = kind
        self.expression = expression
        self.parts = dict(parts or {})

    def bind(self, types: Mapping[str, Type]) -> "BoundAggregate":
        if self.kind == "struct":
            parts = {name: part.bind(types) for name, part in self.parts.items()}
            return BoundAggregate("struct", struct_of({name: part.type for name, part in parts.items()}), parts=parts)
        if self.expression is None:
            return BoundAggregate("count", LONG)
        bound = self.expression.bind(types)
        try:
            return _AGGREGATE_RULES[self.kind](self.kind, bound)
        except Refused as refused:
            raise ExpressionError(f"{self!r}: {refused}") from None

    def expressions(self) -> list[Expression]:
        """All that it reads."""
        own = [] if self.expression is None else [self.expression]
        return own + [each for part in self.parts.values() for each in part.expressions()]

    @property
    def needs_spark(self) -> bool:
        return any(each.needs_spark for each in self.expressions())

    def __repr__(self) -> str:
        if self.kind == "struct":
            return f"aggregates({', '.join(f'{name}={part!r}' for name, part in self.parts.items())})"
        name = self.kind if self.kind in {"count", "avg"} else f"{self.kind}_"
        return f"{name}({'' if self.expression is None else repr(self.expression)})"


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """An aggregate with types, and its fold for plain Python.

    A state is made of numbers, strings, None and lists, so that JSON can carry it; states may be merged (sessions).
    """

    kind: str
    type: Type
    argument: Bound | None = None
    """None: every record counts."""
    parts: "Mapping[str, BoundAggregate] | None" = None

    def fold(self) -> FoldFunctions:
        if self.parts is not None:
            return StructFold({name: part.fold() for name, part in self.parts.items()})
        evaluate = None if self.argument is None else self.argument.evaluator()
        return FOLDS[self.kind](evaluate, self.type)


def _bind_count(kind: str, argument: Bound) -> BoundAggregate:
    return BoundAggregate(kind, LONG, argument)


def _bind_sum(kind: str, argument: Bound) -> BoundAggregate:
    (number,) = RULES["abs"]("abs", [argument], ()).args  # the rule that makes a number of it, or refuses
    total = LONG if number.type.is_integer else DOUBLE
    return BoundAggregate(kind, total, RULES["cast"]("cast", [number], (total,)))


def _bind_average(kind: str, argument: Bound) -> BoundAggregate:
    (number, _) = RULES["div"]("div", [argument, argument], ()).args
    return BoundAggregate(kind, DOUBLE, number)


def _bind_extreme(kind: str, argument: Bound) -> BoundAggregate:
    bound = RULES["least"]("least", [argument], ())
    return BoundAggregate(kind, bound.type, argument)


_AGGREGATE_RULES: Final = {
    "count": _bind_count,
    "sum": _bind_sum,
    "min": _bind_extreme,
    "max": _bind_extreme,
    "avg": _bind_average,
}


def count(expression: Expression | None = None) -> Aggregate:
    """The number of records, or of those for which the expression is not null. A long."""
    return Aggregate("count", expression)


def sum_(expression: Expression) -> Aggregate:
    """A long for integers (null once it does not fit), a double for doubles. Null without any value."""
    return Aggregate("sum", expression)


def min_(expression: Expression) -> Aggregate:
    return Aggregate("min", expression)


def max_(expression: Expression) -> Aggregate:
    return Aggregate("max", expression)


def avg(expression: Expression) -> Aggregate:
    """A double."""
    return Aggregate("avg", expression)


def aggregates(**parts: Aggregate) -> Aggregate:
    """Several at once: `aggregates(low=min_(value["price"]), trades=count())` gives {"low": ..., "trades": ...}."""
    if not parts:
        raise TypeError("aggregates() needs at least one: aggregates(name=count(), ...)")
    for name, part in parts.items():
        if not isinstance(part, Aggregate):
            raise TypeError(f"{name} has to be an aggregate such as count() or sum_(...), not {part!r}")
    return Aggregate("struct", parts=parts)
