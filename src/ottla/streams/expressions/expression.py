"""The language of expressions: leaves, operators and functions over one record."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ottla.serdes import dates
from ottla.serdes.types import (
    BINARY,
    Type,
    literal_type,
    parse_type,
)
from ottla.streams.expressions.bound import (
    FIXED_TYPES,
    FUNCTIONS,
    HEADERS,
    Bound,
    Declaration,
    Evaluator,
    Inputs,
    Parameters,
    Refused,
)
from ottla.streams.expressions.patterns import checked_pattern
from ottla.streams.expressions.text import text_of

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = [
    "Expression",
    "ExpressionError",
    "Inputs",
    "array",
    "header",
    "headers",
    "key",
    "left",
    "lit",
    "offset",
    "partition",
    "right",
    "spark",
    "struct",
    "timestamp",
    "topic",
    "value",
    "when",
]


_LEAVES: Final = {"header": "headers", "headers": "headers", "now": "now"}
"""Functions that read something themselves."""


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
            kind = literal_type(self.options[0])
            assert kind is not None, "lit() lets nothing else through"
            return Bound("lit", kind, options=self.options)
        if self.function == "header":
            return Bound("header", BINARY, options=self.options)
        if self.function == "headers":
            return Bound("headers", HEADERS)
        if self.function in {"leaf", "variable"}:
            return self._bind_leaf(types)
        try:
            plain = [argument.bind(types) for argument in self.args if argument.function != "lambda"]
            lambdas = self._bind_lambdas(plain, types)
            return FUNCTIONS[self.function].rule(self.function, [*plain, *lambdas], self.options)
        except Refused as refused:
            raise ExpressionError(f"{self!r}: {refused}") from None

    def _bind_leaf(self, types: Mapping[str, Type]) -> Bound:
        (name,) = self.options
        kind = types.get(name) or FIXED_TYPES.get(name)
        if kind is None:
            known = ", ".join([*types, *FIXED_TYPES])
            raise ExpressionError(f"{self!r}: there is no {self!r} here; there are {known}")
        return Bound(self.function, kind, options=self.options)

    def _bind_lambdas(self, plain: Sequence[Bound], types: Mapping[str, Type]) -> list[Bound]:
        """The types of a lambda's parameters are known when those of the other arguments are."""
        lambdas = [argument for argument in self.args if argument.function == "lambda"]
        kinds = FUNCTIONS[self.function].lambda_types
        if kinds is None:
            if lambdas:
                raise Refused("it takes no functions")
            return []
        wanted = kinds(plain)
        if len(wanted) != len(lambdas):
            raise Refused(f"{len(wanted)} functions are needed for {plain[0].type}, not {len(lambdas)}")
        bound = []
        for each, parameters in zip(lambdas, wanted, strict=True):
            if len(parameters) != len(each.options):
                raise Refused(f"for {plain[0].type} {each!r} needs {len(parameters)} parameters")
            body = each.args[0].bind({**types, **dict(zip(each.options, parameters, strict=True))})
            bound.append(Bound("lambda", body.type, (body,), each.options))
        return bound

    def compile(self, types: Mapping[str, Type]) -> Evaluator:
        """A function from `Inputs` to the value, for plain Python."""
        return self.bind(types).evaluator()

    def walk(self) -> "Iterator[Expression]":
        """Itself and all parts."""
        yield self
        for argument in self.args:
            yield from argument.walk()

    def leaves(self) -> frozenset[str]:
        """What it reads of a record: names of leaves, `headers` if any header; and `now` if it asks for the time."""
        found = [part.options[0] if part.function == "leaf" else _LEAVES.get(part.function) for part in self.walk()]
        return frozenset(name for name in found if name is not None)

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
        """A field of a struct, the value of a map's key, or with a number an item of an array."""
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

    def __getattr__(self, name: str) -> "Callable[..., Expression]":
        """Every declared function is a method of its first argument, too: `value["name"].initcap()`."""
        declared = FUNCTIONS.get(name)
        if declared is not None and not name.startswith("_"):
            return lambda *args, **named: call(declared, (self, *args), named)
        from difflib import get_close_matches  # noqa: PLC0415  for the error alone

        near = [] if name.startswith("_") else get_close_matches(name, [*FUNCTIONS, *dir(Expression)], 1)
        raise AttributeError(
            f"there is no function {name!r} of expressions" + (f"; do you mean {near[0]}?" if near else "")
        )

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
        """To a type by its name: `long`, `decimal(10, 2)`, `timestamp`, `array<double>`, ... What cannot be converted
        becomes null. Between a number and a timestamp milliseconds count, between an int and a date days."""
        kind = parse_type(name)
        if kind.has("any"):
            raise ValueError(f"cast to {name} is not possible: any stands for what has no type")
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


class Function:
    """A declared function, to be called with expressions, constants and, where it takes them, Python functions."""

    def __init__(self, declared: Declaration) -> None:
        self._declared = declared
        self.__doc__ = f"{declared.name}({declared.parameters}): {declared.about}"

    def __call__(self, *args: object, **named: object) -> Expression:
        return call(self._declared, args, named)

    def __repr__(self) -> str:
        return f"{self._declared.name}({self._declared.parameters})"


def call(declared: Declaration, args: Sequence[object], named: Mapping[str, object]) -> Expression:
    whole = Parameters.parse(declared.parameters).arrange(declared.name, args, named)
    takes_functions = declared.lambda_types is not None
    return Expression(
        declared.name, [_traced(each) if takes_functions and _is_plain(each) else lit(each) for each in whole]
    )


def _is_plain(given: object) -> bool:
    return callable(given) and not isinstance(given, Expression)


_DEPTH: Final[ContextVar[int]] = ContextVar("depth of lambdas", default=0)


def _traced(function: Any) -> Expression:
    """A Python function as an expression: it is called once, with expressions that stand for its arguments.

    A parameter is named after the depth as well, lest that of an inner lambda hide one of the same name around it.
    """
    names = list(inspect.signature(function).parameters)
    depth = _DEPTH.get()
    variables = [f"{name}@{depth}" for name in names]
    token = _DEPTH.set(depth + 1)
    try:
        body = lit(function(*[Expression("variable", options=(each,)) for each in variables]))
    finally:
        _DEPTH.reset(token)
    return Expression("lambda", (body,), variables)


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


headers: Final = Expression("headers")
"""All of them, in their order: an array of structs of KEY and VALUE; empty if there are none."""


def lit(constant: object) -> Expression:
    """A constant: text, bytes, numbers (Decimal too), dates and times. An expression stays what it is; a list or a dict
    becomes an array or a struct."""
    match constant:
        case Expression():
            return constant
        case dict():
            return struct(**constant)
        case list() | tuple():
            return array(*constant)
    if literal_type(constant) is None:
        raise TypeError(f"{constant!r} cannot be part of an expression")
    return Expression("lit", options=(_one_form(constant),))


def _one_form(constant: object) -> object:
    """Timestamps in UTC, both they and times to the millisecond."""
    match constant:
        case datetime():
            return dates.in_utc(constant)
        case time():
            return dates.to_ms(constant)
    return constant


# ---- functions


def when(condition: object, result: object) -> Case:
    """`when(c, a).when(d, b).otherwise(e)`: the result of the first condition that is true."""
    return Case("case", (lit(condition), lit(result), lit(None)))


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
