"""Functions that users write: CREATE FUNCTION … LANGUAGE PYTHON AS $$ … $$.

A *scalar* function is `def name(a, b): …`, called for each row; a null among the arguments gives null without a call. A
*table* function is the same and gives a list, a row for each item. An *aggregate* is a class with `initial()`,
`add(state, value, …)`, `merge(state, other)`, `result(state)` and, to follow a table, `undo(state, value, …)`.

What raises makes null, as every expression that fails; what does not end is stopped after its time and counts as that.
The text is compiled where it runs: the log of statements and the plan of a query carry the text alone.
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ottla.serdes.json import json_writer
from ottla.serdes.types import NULL, Type, array_of
from ottla.sql.arguments import Argument, Refused
from ottla.sql.functions.coercions import coerced, null_of
from ottla.sql.functions.declare import AggregateFunction, Scalar, TableFunction
from ottla.sql.python_calls import Code, instance, limited
from ottla.sql.types import sql_text
from ottla.streams.expressions import Aggregate, Expression
from ottla.streams.expressions.aggregates import own
from ottla.streams.expressions.batches import BatchAggregate
from ottla.streams.expressions.functions.declare import FAILURES
from ottla.streams.expressions.functions.python import python_call

if TYPE_CHECKING:
    import pyarrow as pa

TIMEOUT_MS: Final = 1_000
"""How long one call may take, unless the statement says otherwise (WITH (TIMEOUT_MS=…))."""
MAX_SOURCE: Final = 100_000
"""Characters of a function."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """As a statement declares it."""

    name: str
    kind: str
    """SCALAR, AGGREGATE or TABLE."""
    parameters: tuple[tuple[str, Type], ...]
    returns: Type
    """Of a table function: of one row."""
    source: str
    keeps: Type | None = None
    """Of an aggregate: what it keeps of a group. None: what it returns."""
    timeout_ms: int = TIMEOUT_MS

    @property
    def signature(self) -> str:
        return f"{', '.join(sql_text(kind) for _, kind in self.parameters)} -> {sql_text(self.returns)}"

    def declared(self) -> Scalar | AggregateFunction | TableFunction:
        """What analysis gets."""
        told = ((self.signature,), "In Python.")
        if self.kind == "AGGREGATE":
            return AggregateFunction(self.name, self._aggregate, *told, undo=self._has_undo)
        gives = self.returns if self.kind == "SCALAR" else array_of(self.returns)
        code = Code(self.source, self.name, self.timeout_ms)

        def make(args: Sequence[Argument]) -> Expression:
            return python_call(code, gives, [each.expression for each in self._converted(args)])

        if self.kind == "TABLE":
            return TableFunction(self.name, make, *told)
        return Scalar(self.name, make, *told)

    @property
    def _has_undo(self) -> bool:
        body = next(each for each in ast.parse(self.source).body if _is_called(each, self.name))
        return any(isinstance(each, ast.FunctionDef) and each.name == "undo" for each in ast.walk(body))

    def _aggregate(self, args: Sequence[Argument]) -> Aggregate:
        made = _Own(self) if self._has_undo else _OwnWithoutUndo(self)
        return own(made, *[each.expression for each in self._converted(args)])

    def _converted(self, args: Sequence[Argument]) -> list[Argument]:
        if len(args) != len(self.parameters):
            raise Refused(f"{self.name} takes {len(self.parameters)} arguments, not {len(args)}: ({self.signature})")
        found = []
        for given, (name, kind) in zip(args, self.parameters, strict=True):
            made = Argument(null_of(kind), kind) if given.type == NULL else coerced(given, kind)
            if made is None:
                raise Refused(f"{name} of {self.name} is {sql_text(kind)}, not {sql_text(given.type)}; CAST it")
            found.append(made)
        return found


def check(function: PythonFunction) -> None:
    """Raises Refused for a text that cannot be such a function. Nothing of it is run."""
    if len(function.source) > MAX_SOURCE:
        raise Refused(f"a function has at most {MAX_SOURCE} characters")
    try:
        body = ast.parse(function.source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"{function.name} is no Python: {error}") from None
    found = [each for each in body if _is_called(each, function.name)]
    if not found:
        what = "class" if function.kind == "AGGREGATE" else "def"
        raise Refused(f"the text has no `{what} {function.name.lower()}`, which is what is called")
    if function.kind == "AGGREGATE":
        _check_class(found[-1], function)
    else:
        _check_def(found[-1], function)


def _check_class(node: ast.stmt, function: PythonFunction) -> None:
    methods = {each.name for each in ast.walk(node) if isinstance(each, ast.FunctionDef)}
    missing = [each for each in ("initial", "add", "merge", "result") if each not in methods]
    if not isinstance(node, ast.ClassDef) or missing:
        raise Refused(
            f"the aggregate {function.name} is a class with initial, add, merge and result"
            + (f": there is no {missing[0]}" if missing else "")
        )


def _check_def(node: ast.stmt, function: PythonFunction) -> None:
    if not isinstance(node, ast.FunctionDef):
        raise Refused(f"{function.name} is a plain function: def {function.name.lower()}(...)")
    given, wanted = node.args, len(function.parameters)
    least = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    most = len(given.posonlyargs) + len(given.args)
    if not (least <= wanted and (given.vararg is not None or wanted <= most)):
        raise Refused(f"{function.name} is declared with {wanted} parameters, but the text's def takes {most}")


def _is_called(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.upper() == name


# ---- aggregates


@lru_cache(1024)
def _writer(kind: Type) -> Callable[[Any], str]:
    """Raises for what is not of the type."""
    return json_writer(kind)


class _OwnWithoutUndo(BatchAggregate):
    """A user's class as streams call it: a value at a time. A row whose call fails is passed over; a result that fails
    is null."""

    keeps = returns = "the types of the statement"

    def __init__(self, function: PythonFunction) -> None:
        self._function = function
        # Streams count them.
        self.takes: tuple[str, ...] = tuple(str(kind) for _, kind in function.parameters)  # type: ignore[misc]

    def argument_types(self) -> list[Type]:
        return [kind for _, kind in self._function.parameters]

    def result_type(self) -> Type:
        return self._function.returns

    def state_type(self) -> Type:
        return self._function.keeps or self._function.returns

    def _call(self, method: str, kind: Type, otherwise: Any, *args: Any) -> Any:
        """`otherwise`: what it is if the call fails, or gives what is not of the type."""
        function = self._function
        try:
            made = limited(
                lambda: getattr(instance(function.source, function.name), method)(*args),
                function.timeout_ms,
                function.name,
            )
            _writer(kind)(made)
        except FAILURES:
            return otherwise
        return made

    def initial(self) -> Any:
        return self._call("initial", self.state_type(), None)

    def add(self, state: Any, *columns: "pa.Array") -> Any:
        return self._each("add", state, columns)

    def _each(self, method: str, state: Any, columns: "Sequence[pa.Array]") -> Any:
        """A null among the arguments changes nothing, as in all aggregates of SQL."""
        for row in zip(*[column.to_pylist() for column in columns], strict=True):
            state = state if None in row else self._call(method, self.state_type(), state, state, *row)
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return self._call("merge", self.state_type(), state, state, other)

    def result(self, state: Any) -> Any:
        return self._call("result", self.result_type(), None, state)


class _Own(_OwnWithoutUndo):
    def undo(self, state: Any, *columns: "pa.Array") -> Any:
        return self._each("undo", state, columns)


__all__ = ["PythonFunction", "check"]
