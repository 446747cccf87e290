"""What a function of SQL takes: signatures as a reader writes them, and the choice between several.

    scalar("SUBSTRING", e.ksql_substring, "STRING, INT[, INT] -> STRING", "BYTES, INT[, INT] -> BYTES", about="...")

Types are written as in SQL; DECIMAL is one of any precision, T and U stand for any type (the same one wherever it is
written), C for one that has an order, `...` says that the last may be repeated, `[, ...]` that the rest may be left
out. A LAMBDA is checked by the function itself. Of several signatures the one wins that converts least; what converts
by itself is said by `sql.coercions`. NULL goes with all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.serdes.types import NULL, STRING, Type, array_of, as_decimal, map_of
from ottla.sql.functions.coercions import coerced, loosely, null_of, united
from ottla.sql.functions.declare import Argument, LambdaTypes, Refused, Scalar
from ottla.sql.types import NAMES, sql_text
from ottla.streams.expressions import Expression, ExpressionError

_UNORDERED: Final = ("array", "map", "struct")
_COST: Final = {"int": 0, "long": 1, "decimal": 2, "double": 3}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Of one parameter."""

    name: str
    """A type's name of serdes, `T`, `U`, `C`, `LAMBDA`, `array` or `map`."""
    element: "Pattern | None" = None

    @property
    def is_variable(self) -> bool:
        return self.name in {"T", "U", "C"}

    def variables(self, given: Type) -> list[tuple[str, Type]]:
        """What an argument says of the variables in it."""
        if given == NULL:
            return []
        if self.is_variable:
            return [(self.name, given)]
        if self.element is not None and given.name == self.name and given.element is not None:
            return self.element.variables(given.element)
        return []

    def type_of(self, given: Type, known: dict[str, Type]) -> Type | None:
        """The type that is wanted where an argument has another; None if it can be none."""
        match self.name:
            case "decimal":
                return as_decimal(given) if given.name in {"int", "long", "decimal"} else None
            case "array" | "map":
                assert self.element is not None
                held = given.element if given.name == self.name and given.element is not None else NULL
                element = self.element.type_of(held, known)
                return None if element is None else array_of(element) if self.name == "array" else map_of(element)
        if self.is_variable:
            return known.get(self.name, STRING)
        return Type(self.name)


def _parsed(text: str) -> Pattern:
    text = text.strip()
    if text in {"T", "U", "C", "LAMBDA"}:
        return Pattern(text)
    if text == "DECIMAL":
        return Pattern("decimal")
    if text.startswith("ARRAY<"):
        return Pattern("array", _parsed(text[6:-1]))
    if text.startswith("MAP<"):
        return Pattern("map", _parsed(text[4:-1].partition(",")[2]))
    return Pattern(NAMES[text].name)


@dataclass(frozen=True, slots=True)
class Signature:
    text: str
    parameters: tuple[Pattern, ...]
    required: int
    repeated: bool

    @staticmethod
    def parse(text: str) -> "Signature":
        given = text.partition(" ->")[0]
        needed = given.partition("[")[0].rstrip(", ")
        words = split_types(given.replace("[", "").replace("]", ""))
        repeated = bool(words) and words[-1].endswith("...")
        parameters = tuple(_parsed(each.removesuffix("...")) for each in words)
        return Signature(text, parameters, len(split_types(needed)), repeated)

    def patterns(self, count: int) -> list[Pattern] | None:
        """One for each argument; None if there are too few or too many."""
        if count < self.required or (count > len(self.parameters) and not self.repeated):
            return None
        return [*self.parameters, *self.parameters[-1:] * (count - len(self.parameters))][:count]

    def converted(self, args: Sequence[Argument]) -> tuple[int, list[Argument]] | None:
        """How far the arguments are from what is wanted, and they as that; None if they cannot become it."""
        patterns = self.patterns(len(args))
        if patterns is None:
            return None
        known = self._variables(patterns, args)
        if known is None:
            return None
        cost, made = 0, []
        for pattern, argument in zip(patterns, args, strict=True):
            if pattern.name == "LAMBDA" or argument.is_lambda:
                if pattern.name != "LAMBDA" or not argument.is_lambda:
                    return None
                made.append(argument)
                continue
            found = _fitted(pattern, argument, known)
            if found is None:
                return None
            cost += _distance(argument.type, found.type)
            made.append(found)
        return cost, made

    @staticmethod
    def _variables(patterns: Sequence[Pattern], args: Sequence[Argument]) -> dict[str, Type] | None:
        known: dict[str, Type] = {}
        constants: list[tuple[str, Type]] = []
        for pattern, argument in zip(patterns, args, strict=True):
            found = pattern.variables(argument.type)
            if pattern.is_variable and argument.is_literal:
                constants += found  # these give way to the others
                continue
            for name, kind in found:
                both = united(known.get(name, NULL), kind)
                if both is None:
                    return None
                known[name] = both
        for name, kind in constants:
            known[name] = united(known.get(name, NULL), kind) or known[name]
        if known.get("C", NULL).name in _UNORDERED:
            return None
        return known


def split_types(text: str) -> list[str]:
    """At commas that are not within < > or ( )."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found if each.strip()]


def _fitted(pattern: Pattern, argument: Argument, known: dict[str, Type]) -> Argument | None:
    wanted = pattern.type_of(argument.type, known)
    if wanted is None:
        return None
    if argument.is_null:
        return Argument(null_of(wanted), wanted)
    try:
        made = coerced(argument, wanted)
    except Refused:  # a text that is none of these: another signature may take it as it is
        made = None
    if made is None and pattern.is_variable and argument.is_literal:
        made = loosely(argument, wanted)
    return made


def _distance(given: Type, made: Type) -> int:
    if given in (made, NULL):
        return 0
    if given.name in _COST and made.name in _COST:
        return 1 + _COST[made.name] - _COST[given.name]
    return 10


def chosen(name: str, signatures: Sequence[Signature], args: Sequence[Argument]) -> list[Argument]:
    """The arguments as the signature that fits best wants them. Raises Refused, which names all of them."""
    found = [made for each in signatures if (made := each.converted(args)) is not None]
    if found:
        return min(found, key=lambda each: each[0])[1]
    given = ", ".join("a lambda" if each.is_lambda else sql_text(each.type) for each in args)
    there = "; ".join(f"{name}({each.text.replace(' ->', ') ->', 1)}" for each in signatures)
    raise Refused(f"{name} cannot take ({given}). There is {there}. CAST what differs")


def scalar(
    name: str,
    build: Callable[..., Expression],
    *signatures: str,
    about: str,
    lambda_types: LambdaTypes | None = None,
    unit_first: bool = False,
) -> Scalar:
    """`build` is given an expression for each argument, of just the type that the signature says."""
    known = [Signature.parse(each) for each in signatures]

    def make(args: Sequence[Argument]) -> Expression:
        made = chosen(name, known, args)
        _checked(name, build, made)
        return build(*[each.expression for each in made])

    return Scalar(name, make, signatures, about, lambda_types, unit_first)


def _checked(name: str, build: Callable[..., Expression], args: Sequence[Argument]) -> None:
    """What only the value of a constant tells, a bad pattern for instance, is said at once."""
    if any(each.is_lambda for each in args):
        return
    result_type(name, build, args)


def result_type(name: str, build: Callable[..., Expression], args: Sequence[Argument]) -> Type:
    types = {f"#{place}": each.type for place, each in enumerate(args)}
    stand_ins = [
        each.expression if each.is_literal else Expression("leaf", options=(f"#{place}",))
        for place, each in enumerate(args)
    ]
    try:
        return build(*stand_ins).bind(types).type
    except ExpressionError as error:
        raise Refused(f"{name}: {str(error).partition(': ')[2]}") from None


def table(*functions: Scalar) -> dict[str, Scalar]:
    found = {each.name: each for each in functions}
    assert len(found) == len(functions), "a function is declared twice"
    return found
