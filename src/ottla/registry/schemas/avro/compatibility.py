"""Whether a reader's schema can read what a writer's wrote: the verdicts of Java Avro 1.12's SchemaCompatibility.

They are Java's to the letter, with where and why, because people match on Confluent's texts; that includes what is odd
in them: a pair of types that is met again is answered with what was found where it was met first, and what was found
inside of a branch of a union is told as a missing branch only. A pair that is still being compared counts as
compatible, so that recursive schemas come to an end.

The comparing of a pair is a generator that asks for inner pairs: two rings of types make a path as long as the product
of their lengths, which no call stack holds.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from ottla.registry.schemas.avro import hints
from ottla.registry.schemas.avro.render import canonical_text
from ottla.registry.schemas.avro.tree import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Named,
    Node,
    Primitive,
    Record,
    Union,
    full_name,
)
from ottla.registry.schemas.base import Budget, Difference

PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""What a reader of a type can read besides it."""
_MANY: Final = 64
"""Faults of one pair."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path in the reader's schema, from its end."""

    before: "Place | None"
    token: str

    def __str__(self) -> str:
        tokens = []
        place: Place | None = self
        while place is not None:
            tokens.append(place.token.replace("~", "~0").replace("/", "~1"))
            place = place.before
        return "/" + "/".join(reversed(tokens))


Where: TypeAlias = Place | None


class Fault(NamedTuple):
    """A difference before it is put into words: of most branches that do not fit, nobody will hear."""

    code: str
    where: Where
    description: str
    info: str
    hint: Callable[[], str]

    def told(self) -> Difference:
        path = str(self.where) if self.where is not None else "/"
        described = self.description.replace("{info}", self.info).replace("{path}", path)
        text = f"{{errorType:'{self.code}', description:'{described}', additionalInfo:'{self.info}'}}"
        return Difference(self.code, path, text, self.hint())


Found: TypeAlias = tuple[Fault, ...]
Comparing: TypeAlias = Generator["Comparing", Found, Found]


class Ambiguous(Exception):
    """A field of the reader goes by several names of the writer's fields. Java gives up on the whole comparison."""

    def __init__(self, field: Field, names: list[str], position: int, writer: Record) -> None:
        kind = field.type.kind.upper()
        super().__init__(
            f"Unexpected exception during compatibility check: Reader record field {field.name} type:{kind} "
            f"pos:{position} matches multiple fields in writer record schema {canonical_text(writer)}"
        )
        self.difference = Difference(
            "AMBIGUOUS_ALIAS", f"/fields/{position}/aliases", str(self), hints.ambiguous_alias(field, names)
        )


def differences(reader: Node, writer: Node, budget: Budget) -> tuple[Difference, ...]:
    """Texts have %s where Confluent's server puts «new» or «old»: the first is the reader, the second the writer."""
    comparison = _Comparison(budget)
    try:
        return tuple(fault.told() for fault in comparison.run(comparison.pair(reader, writer, None)))
    except Ambiguous as found:
        return (found.difference,)


class _Comparison:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._known: dict[tuple[int, int], Found] = {}

    def run(self, first: Comparing) -> Found:
        stack = [first]
        found: Found = ()
        begun = False
        while stack:
            try:
                inner = stack[-1].send(found) if begun else next(stack[-1])
            except StopIteration as done:
                stack.pop()
                found, begun = done.value, True
            else:
                stack.append(inner)
                begun = False
        return found

    def pair(self, reader: Node, writer: Node, where: Where) -> Comparing:
        key = (id(reader), id(writer))
        known = self._known.get(key)
        if known is not None:
            return known
        self._known[key] = ()  # in progress: compatible unless proven otherwise
        self._budget.spend(3)
        found = self._each_once((yield from self._compared(reader, writer, where)))
        self._known[key] = found
        return found

    def _each_once(self, found: Found) -> Found:
        """A type that stands in two fields is told of twice, as by Java; but a type that holds two, of which each holds
        two, would be told of without end."""
        if len(found) <= _MANY:
            return found
        self._budget.spend(len(found) // _MANY)
        return tuple({id(fault): fault for fault in found}.values())

    def _compared(self, reader: Node, writer: Node, where: Where) -> Comparing:
        match reader, writer:
            case Union(), Union():
                return (yield from self._unions(reader, writer, where))
            case _, Union():
                found: Found = ()
                for index, branch in enumerate(writer.branches):
                    found += yield self.pair(reader, branch, Place(where, str(index)))
                return found
            case Union(), _:
                return (yield from self._branch_for(reader, writer, where))
            case Array(), Array():
                return (yield self.pair(reader.items, writer.items, Place(where, "items")))
            case Map(), Map():
                return (yield self.pair(reader.values, writer.values, Place(where, "values")))
            case Record(), Record():
                found = _names(reader, writer, where)
                return found + (yield from self._fields(reader, writer, Place(where, "fields")))
            case Enum(), Enum():
                return _names(reader, writer, where) + _symbols(reader, writer, where)
            case Fixed(), Fixed():
                return _names(reader, writer, where) + _sizes(reader, writer, where)
            case _:
                return _kinds(reader, writer, where)

    def _unions(self, reader: Union, writer: Union, where: Where) -> Comparing:
        found: Found = ()
        for index, branch in enumerate(writer.branches):
            # What is found inside is told from the root, and only if the very pair is met again elsewhere.
            if (yield self.pair(reader, branch, None)):
                found += (_missing_branch(reader, branch, Place(where, str(index))),)
        return found

    def _branch_for(self, reader: Union, writer: Node, where: Where) -> Comparing:
        for branch in reader.branches:
            if not (yield self.pair(branch, writer, None)):
                return ()
        return (_missing_branch(reader, writer, where),)

    def _fields(self, reader: Record, writer: Record, where: Place) -> Comparing:
        found: list[Fault] = []
        self._budget.spend(len(reader.fields))
        for position, field in enumerate(reader.fields):
            here = Place(where, str(position))
            written = _written_field(field, writer, position)
            if written is None:
                if not field.has_default:
                    found += yield from self._without_default(field, reader, writer, here)
            elif type(field.type) is not Primitive or type(written.type) is not Primitive:
                found += yield self.pair(field.type, written.type, Place(here, "type"))
            elif field.type.kind != written.type.kind:  # most fields: nothing to remember, nobody to ask
                found += _kinds(field.type, written.type, Place(here, "type"))
        return tuple(found)

    def _without_default(self, field: Field, reader: Record, writer: Record, where: Place) -> Comparing:
        hint = partial(hints.missing_default, field, reader)
        if isinstance(field.type, Enum) and field.type.default is not None:
            # Java compares the enum with the writer's record then. Its default is for symbols, not for fields.
            found = yield self.pair(field.type, writer, Place(where, "type"))
            return tuple(each._replace(hint=hint) for each in found)
        described = (
            "The field '{info}' at path '{path}' in the %s schema has no default value and is missing in the %s schema"
        )
        return (Fault("READER_FIELD_MISSING_DEFAULT_VALUE", where, described, field.name, hint),)


def _written_field(field: Field, writer: Record, position: int) -> Field | None:
    direct = writer.by_name.get(field.name)
    if not field.aliases:
        return direct
    names = [name for name in dict.fromkeys((field.name, *field.aliases)) if name in writer.by_name]
    if len(names) + (direct is not None and field.name in field.aliases) > 1:
        raise Ambiguous(field, names, position, writer)
    return writer.by_name[names[0]] if names else None


def _names(reader: Named, writer: Named, where: Where) -> Found:
    if is_named_alike(reader, writer):
        return ()
    return (
        Fault(
            "NAME_MISMATCH",
            Place(where, "name"),
            "The name of the schema has changed (path '{path}')",
            f"expected: {writer.name.full}",
            partial(hints.renamed, reader, writer),
        ),
    )


def is_named_alike(reader: Named, writer: Named) -> bool:
    """Namespaces do not matter, but to an alias they do."""
    if reader.name.simple == writer.name.simple:
        return True
    return any(_known_as(alias, reader.name) == writer.name.full for alias in reader.aliases)


def _known_as(alias: Name, of: Name) -> str:
    """An alias without namespace of a type that has one stands for nothing that is written so."""
    return f".{alias.simple}" if of.space and not alias.space else alias.full


def _symbols(reader: Enum, writer: Enum, where: Where) -> Found:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.default is not None:
        return ()
    return (
        Fault(
            "MISSING_ENUM_SYMBOLS",
            Place(where, "symbols"),
            "The %s schema is missing enum symbols '{info}' at path '{path}' in the %s schema",
            f"[{', '.join(missing)}]",
            partial(hints.missing_symbols, reader, missing),
        ),
    )


def _sizes(reader: Fixed, writer: Fixed, where: Where) -> Found:
    if reader.size == writer.size:
        return ()
    return (
        Fault(
            "FIXED_SIZE_MISMATCH",
            Place(where, "size"),
            "The size of FIXED type field at path '{path}' in the %s schema does not match with the %s schema",
            f"expected: {writer.size}, found: {reader.size}",
            partial(hints.other_size, reader, writer),
        ),
    )


def _kinds(reader: Node, writer: Node, where: Where) -> Found:
    if reader.kind == writer.kind or writer.kind in PROMOTIONS.get(reader.kind, ()):
        return ()
    return (
        Fault(
            "TYPE_MISMATCH",
            where,
            "The type (path '{path}') of a field in the %s schema does not match with the %s schema",
            f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
            partial(hints.other_type, reader, writer),
        ),
    )


def _missing_branch(reader: Union, writer: Node, where: Where) -> Fault:
    return Fault(
        "MISSING_UNION_BRANCH",
        where,
        "The %s schema is missing a type inside a union field at path '{path}' in the %s schema",
        f"reader union lacking writer type: {writer.kind.upper()}",
        partial(hints.missing_branch, reader, full_name(writer)),
    )
