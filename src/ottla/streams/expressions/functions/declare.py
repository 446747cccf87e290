"""How a function is declared: `declare` with what it takes and gives, its Python body and its Spark column.

    upper = declare("upper", "text", takes(text, gives=STRING), str.upper, column=lambda F, s: F.upper(s), about="...")

*What it takes*: a rule, mostly `takes(...)` with one kind per parameter (the last for all further ones): a kind turns
an argument into what the body wants, or refuses it. *Nulls*: one among the arguments makes the result null, without a
call of the body; with `nulls="..."` the body is given them, and the words say what becomes of them. *Errors*: a body
that raises (FAILURES) gives null; say `fails=True` where it may: one bad record must not end a query.

*The column* must give what the body gives, for all values, and never end a query whatever Spark's ANSI mode is. Where
there is none, leave it out: the planner then lets Python compute the node. tests/spark/test_functions.py holds the two
together.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from ottla.serdes.types import ANY, BINARY, BOOLEAN, DOUBLE, INT, LONG, NULL, STRING, Type, array_of, common, map_of
from ottla.streams.expressions.bound import (
    FUNCTIONS,
    Bound,
    Build,
    BuildColumn,
    Declaration,
    Evaluator,
    Refused,
    Rule,
    Spark,
)
from ottla.streams.expressions.expression import Function

FAILURES: Final = (ValueError, ArithmeticError, LookupError, TypeError, RecursionError, MemoryError)
"""What a body may raise for arguments that have no answer."""


def family(name: str) -> Callable[..., Function]:
    """`declare` for the functions of one file."""
    return partial(declare, family=name)


def declare(
    name: str,
    parameters: str,
    rule: Rule,
    body: Callable[..., Any] | None = None,
    *,
    about: str,
    family: str,
    column: Callable[..., Any] | None = None,
    typed_column: BuildColumn | None = None,
    no_column: Callable[[Bound], str | None] | None = None,
    build: Build | None = None,
    lambda_types: Callable[[Sequence[Bound]], Sequence[Sequence[Type]]] | None = None,
    nulls: str = "null",
    fails: bool = False,
    exact: bool = True,
) -> Function:
    """Adds a function to the table and gives what is called to make an expression of it.

    Instead of `body`, which is given values, `build` may make an evaluator of the bound call; instead of `column`,
    which is given F and columns, `typed_column` is given the bound call, too.
    """
    assert name not in FUNCTIONS, f"{name} is declared twice"
    made = build or _calling(_required(body, name), nulls, fails)
    declared = Declaration(
        name,
        parameters,
        rule,
        made,
        typed_column or (None if column is None else _plain(column)),
        no_column,
        lambda_types,
        family,
        about,
        nulls,
        exact,
    )
    FUNCTIONS[name] = declared
    return Function(declared)


def _required(body: Callable[..., Any] | None, name: str) -> Callable[..., Any]:
    assert body is not None, f"{name} has no body"
    return body


def _plain(column: Callable[..., Any]) -> BuildColumn:
    return lambda spark, _, args: column(spark.F, *args)


# ---- bodies


def _calling(body: Callable[..., Any], nulls: str, fails: bool) -> Build:
    safe = _guarded(body) if fails else body
    return strict(safe) if nulls == "null" else _given_nulls(safe)


def _guarded(body: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any) -> Any:
        try:
            return body(*args)
        except FAILURES:
            return None

    return guarded


def _given_nulls(body: Callable[..., Any]) -> Build:
    def build(_: Bound, args: list[Evaluator]) -> Evaluator:
        return lambda inputs: body(*[each(inputs) for each in args])

    return build


def strict(body: Callable[..., Any]) -> Build:
    """None in, None out."""

    def build(node: Bound, args: list[Evaluator]) -> Evaluator:
        match args:
            case [argument]:
                return one(body, argument)
            case [left, right]:
                return _two(body, node, left, right)
        return _several(body, args)

    return build


def one(body: Callable[[Any], Any], argument: Evaluator) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        given = argument(inputs)
        return None if given is None else body(given)

    return evaluate


def _two(body: Callable[[Any, Any], Any], node: Bound, left: Evaluator, right: Evaluator) -> Evaluator:
    if node.args[1].function == "lit" and (constant := node.args[1].options[0]) is not None:
        return one(lambda given: body(given, constant), left)

    def evaluate(inputs: Any) -> Any:
        first = left(inputs)
        if first is None:
            return None
        second = right(inputs)
        return None if second is None else body(first, second)

    return evaluate


def _several(body: Callable[..., Any], args: list[Evaluator]) -> Evaluator:
    def evaluate(inputs: Any) -> Any:
        given = [argument(inputs) for argument in args]
        return None if None in given else body(*given)

    return evaluate


def by_type(**bodies: Callable[..., Any]) -> Build:
    """The body for the type of the (first) argument; `other` for the rest."""

    def build(node: Bound, args: list[Evaluator]) -> Evaluator:
        kind = node.args[0].type.name
        return strict(bodies.get(kind, bodies.get("other", _no_body)))(node, args)

    return build


def _no_body(*args: Any) -> Any:
    raise AssertionError("binding let through a type that no body is for")


# ---- conversions


def coerced(node: Bound, wanted: Type) -> Bound:
    """The node as a value of the wanted type. A literal is converted on the spot."""
    if node.type == wanted:
        return node
    if node.type == NULL:
        return Bound("lit", wanted, options=(None,))
    return FUNCTIONS["cast"].rule("cast", [node], (wanted,))


def unified(args: Sequence[Bound]) -> list[Bound]:
    """All in one type."""
    kind = NULL
    for node in args:
        joined = common(kind, node.type)
        if joined is None:
            raise Refused(f"{kind} and {node.type} do not go together; cast one of them")
        kind = joined
    return [coerced(node, kind) for node in args]


# ---- kinds: what a parameter takes

Kind: TypeAlias = Callable[[Bound], Bound]


def text(node: Bound) -> Bound:
    if node.type not in (STRING, ANY, NULL):
        raise Refused(f"a string is needed, not {node.type}; use .cast('string')")
    return coerced(node, STRING)


def boolean(node: Bound) -> Bound:
    if node.type not in (BOOLEAN, ANY, NULL):
        raise Refused(f"a boolean is needed, not {node.type}; write a comparison")
    return coerced(node, BOOLEAN)


def number(node: Bound) -> Bound:
    if node.type in (ANY, NULL):
        return coerced(node, DOUBLE)
    if not node.type.is_number:
        raise Refused(f"a number is needed, not {node.type}; use .cast('double') or .cast('long')")
    return node


def double(node: Bound) -> Bound:
    return coerced(number(node), DOUBLE)


def whole(node: Bound) -> Bound:
    """An int. A long that is no int is null."""
    if node.type in (INT, LONG, ANY, NULL):
        return coerced(node, INT)
    raise Refused(f"a whole number is needed, not {node.type}; use .cast('int')")


def long(node: Bound) -> Bound:
    if node.type in (INT, LONG, ANY, NULL):
        return coerced(node, LONG)
    raise Refused(f"a whole number is needed, not {node.type}; use .cast('long')")


def binary(node: Bound) -> Bound:
    if node.type not in (BINARY, NULL):
        raise Refused(f"bytes are needed, not {node.type}; use .cast('binary')")
    return coerced(node, BINARY)


def text_or_binary(node: Bound) -> Bound:
    return node if node.type == BINARY else text(node)


def some_list(node: Bound) -> Bound:
    if node.type == NULL:
        return coerced(node, array_of(STRING))
    if node.type.name != "array":
        advice = "; give the JSON serde a schema" if node.type == ANY else ""
        raise Refused(f"an array is needed, not {node.type}{advice}")
    return node


def some_map(node: Bound) -> Bound:
    if node.type == NULL:
        return coerced(node, map_of(STRING))
    if node.type.name != "map":
        advice = "; give the JSON serde a schema" if node.type == ANY else ""
        raise Refused(f"a map is needed, not {node.type}{advice}")
    return node


def list_or_map(node: Bound) -> Bound:
    return node if node.type.name == "map" else some_list(node)


def anything(node: Bound) -> Bound:
    """A bare None has to be a null of some type."""
    return coerced(node, STRING) if node.type == NULL else node


def element(kind: Type) -> Type:
    assert kind.element is not None
    return kind.element


# ---- rules


def takes(*kinds: Kind, gives: "Type | Callable[[Sequence[Bound]], Type]") -> Rule:
    """One kind per argument; the last one for all that follow."""

    def rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
        wanted = [*kinds, *kinds[-1:] * (len(args) - len(kinds))]
        nodes = [kind(node) for kind, node in zip(wanted, args, strict=False)]
        return Bound(name, gives if isinstance(gives, Type) else gives(nodes), tuple(nodes), options)

    return rule


def type_of_first(args: Sequence[Bound]) -> Type:
    return args[0].type


def same(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """Arguments and result of one type."""
    nodes = unified(args)
    return Bound(name, nodes[0].type, tuple(nodes), options)


UNORDERED: Final = frozenset(("array", "struct", "windowed", "any", "map"))


def ordered(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    bound = same(name, args, options)
    if bound.type.name in UNORDERED:
        raise Refused(f"{bound.type} has no order; cast it")
    return bound


# ---- columns


def not_literal(place: int, what: str) -> Callable[[Bound], str | None]:
    """Why there is no column where an argument is not the same for all records."""

    def reason(node: Bound) -> str | None:
        if len(node.args) > place and node.args[place].function != "lit":
            return f"{what} of {node.function} is not the same for all records"
        return None

    return reason


def zero(spark: Spark, kind: Type) -> Any:
    return spark.F.lit(0).cast(spark.ddl(kind))
