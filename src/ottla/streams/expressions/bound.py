"""Expressions with types, and what is known of each function that they call.

Binding an expression to the types of its inputs gives a tree of `Bound` nodes in which every conversion is written out,
so that Python (`Bound.evaluator`) and Spark (`run.expression_columns`) have nothing left to decide and cannot decide
differently. `FUNCTIONS` is filled by the families in `expressions.functions`: one `Declaration` for each function.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ottla.serdes.types import BINARY, INT, LONG, STRING, Type, array_of, struct_of
from ottla.streams.expressions.limits import MOST_STEPS, WEIGHTS, TooMuch
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
    now: int | None = None
    """What time it is, for who asks by `now()`: expressions read no clock."""


HEADERS: Final = array_of(struct_of({"KEY": STRING, "VALUE": BINARY}))
"""Of all headers of a record."""

FIXED_TYPES: Final = {"timestamp": LONG, "partition": INT, "offset": LONG, "topic": STRING}
"""Of the leaves whose type does not depend on serdes."""

Evaluator: TypeAlias = Callable[..., Any]
"""Takes Inputs, gives the value. That of a lambda takes the values of its parameters as well."""

Cells: TypeAlias = Mapping[str, list[Any]]
"""Where the parameters of lambdas lie while a body runs, one place each."""
_STEPS: Final = "steps left"
"""Among the cells, under what is no name of a parameter: how many steps there are for all lambdas of a call."""


class Refused(Exception):
    """A function cannot take these arguments. Whoever binds says which expression it was."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A call with types: its arguments have exactly the types that the function wants."""

    function: str
    type: Type
    args: tuple["Bound", ...] = ()
    options: tuple[Any, ...] = ()
    """What is fixed when the expression is written: names, patterns, positions."""

    def evaluator(self, cells: Cells | None = None) -> Evaluator:
        around = {} if cells is None else cells
        match self.function:
            case "leaf":
                return operator.attrgetter(self.options[0])
            case "header":
                return _last_header(self.options[0])
            case "headers":
                return _all_headers
            case "lit":
                return _constant(self.options[0])
            case "variable":
                return _variable(around[self.options[0]])
            case "lambda":
                return _lambda(self, around)
        return built(self, around, Bound.evaluator)

    def why_not_column(self) -> str | None:
        """What of it Spark cannot compute with the very same result; None: all of it can be a column."""
        found = FUNCTIONS.get(self.function)
        own = None if found is None else found.obstacle(self)
        if own is not None:
            return own
        return next((reason for part in self.args if (reason := part.why_not_column()) is not None), None)


def _constant(constant: Any) -> Evaluator:
    return lambda inputs: constant


def _variable(cell: list[Any]) -> Evaluator:
    return lambda inputs: cell[0]


def built(node: Bound, around: Cells, argument: "Callable[[Bound, Cells], Evaluator]") -> Evaluator:
    """A call whose arguments are made by `argument`. The outermost one that takes lambdas has steps for all inside of
    it: loops in loops would never end."""
    declared = FUNCTIONS[node.function]
    if declared.lambda_types is None or _STEPS in around:
        return declared.build(node, [argument(each, around) for each in node.args])
    steps = [0]
    inner = {**around, _STEPS: steps}
    evaluate = declared.build(node, [argument(each, inner) for each in node.args])

    def counted(inputs: Any) -> Any:
        steps[0] = MOST_STEPS
        try:
            return evaluate(inputs)
        except (TooMuch, MemoryError):
            return None

    return counted


def _lambda(node: Bound, around: Cells) -> Evaluator:
    steps = around[_STEPS]
    cells: list[list[Any]] = [[None] for _ in node.options]
    body = node.args[0].evaluator({**around, **dict(zip(node.options, cells, strict=True))})

    def call(inputs: Any, *given: Any) -> Any:
        for cell, each in zip(cells, given, strict=True):
            cell[0] = each
        made = body(inputs)
        left = steps[0] - 1
        if (weight := WEIGHTS.get(type(made))) is not None:
            left -= len(made) // weight
        if left < 0:
            raise TooMuch
        steps[0] = left
        return made

    return call


def _last_header(wanted: str) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        """The last one of that name, as Kafka's `lastHeader`."""
        for name, content in reversed(inputs.headers or ()):
            if name == wanted:
                return content
        return None

    return evaluate


def _all_headers(inputs: Any) -> Any:
    return [{"KEY": name, "VALUE": content} for name, content in inputs.headers or ()]


Rule: TypeAlias = Callable[[str, Sequence[Bound], tuple[Any, ...]], Bound]
"""From the arguments as they were given to the call with every conversion written out. Raises Refused."""
Build: TypeAlias = Callable[[Bound, list[Evaluator]], Evaluator]


class Spark(Protocol):
    """What a column is made with: Spark is no business of this room, so that it is handed in."""

    @property
    def F(self) -> Any:
        """The module pyspark.sql.functions."""

    def ddl(self, kind: Type) -> str:
        """A type as Spark writes it."""

    def cast(self, column: Any, given: Type, wanted: Type) -> Any:
        """From one type to another; null where that cannot be."""


BuildColumn: TypeAlias = Callable[[Spark, Bound, list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of a function, read from the way one would write them: `text, length=None, *more`.

    What is left out has the value that stands there; None at the end is left out of the call.
    """

    text: str
    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    variadic: bool

    @staticmethod
    @cache
    def parse(text: str) -> "Parameters":
        found = _PARAMETER.findall(text)
        plain = [(name, default) for star, name, default in found if not star]
        defaults = {name: _default(default) for name, default in plain if default}
        return Parameters(text, tuple(name for name, _ in plain), defaults, any(star for star, *_ in found))

    def arrange(self, function: str, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Arguments in order, as Python would bind them. Raises TypeError."""
        if len(args) > len(self.names) and not self.variadic:
            raise TypeError(f"{function}({self.text}) takes no more than {len(self.names)}, not {len(args)}")
        given = dict(zip(self.names, args, strict=False))
        for name in named:
            if name in given or name not in self.names:
                raise TypeError(f"{function}({self.text}) has no {name}" + " twice" * (name in given))
        given |= named
        missing = [name for name in self.names if name not in given and name not in self.defaults]
        if missing:
            raise TypeError(f"{function}({self.text}) needs {' and '.join(missing)} as well")
        whole = [given.get(name, self.defaults.get(name)) for name in self.names]
        last = max((place + 1 for place, name in enumerate(self.names) if name in given), default=0)
        while len(whole) > last and whole[-1] is None:
            whole.pop()
        return [*whole, *args[len(self.names) :]]


def _default(text: str) -> str | int | None:
    return None if text == "None" else text[1:-1] if text.startswith("'") else int(text)


_PARAMETER: Final = re.compile(r"(\*?)(\w+)(?:=('[^']*'|[^,]+))?")


@dataclass(frozen=True, slots=True)
class Declaration:
    """All that there is to know of one function."""

    name: str
    parameters: str
    """As a reader would write them; `Parameters` reads them."""
    rule: Rule
    build: Build
    """The Python body, with its rule for nulls."""
    column: BuildColumn | None
    """The same for Spark; None if nothing of Spark's gives the same in all cases."""
    no_column: Callable[[Bound], str | None] | None
    """Why a certain call has no column though others have; None: all have."""
    lambda_types: Callable[[Sequence[Bound]], Sequence[Sequence[Type]]] | None
    """Of the parameters of its lambdas, by its other arguments."""
    family: str
    about: str
    """One sentence for the page of functions."""
    nulls: str = "null"
    """What a null among the arguments gives."""
    exact: bool = True
    """False: the last digit of a double may be another on Spark: Java and C compute a sine each in its own way."""

    def obstacle(self, node: Bound) -> str | None:
        if self.column is None:
            return f"Spark has no column that does what {self.name} does"
        return None if self.no_column is None else self.no_column(node)


FUNCTIONS: Final[dict[str, Declaration]] = {}
"""By name. What is here can be called."""
