"""Which names an expression may use, and what each is over the record at that point."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ottla.serdes.types import STRING, Type, windowed
from ottla.sql import tree as t
from ottla.sql.analysis.refusals import meant, refuse
from ottla.sql.functions.declare import Argument
from ottla.sql.model import BOUNDS, PSEUDO, Columns, DataSource
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression


@dataclass(frozen=True, slots=True)
class Name:
    """A column that can be named: of which source, and what it is."""

    source: str
    column: str
    argument: Argument
    is_key: bool = False
    is_system: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    names: tuple[Name, ...]
    sources: tuple[str, ...]
    """Their aliases, in the order of FROM."""
    types: Mapping[str, Type]
    """Of the record's key and value, and of the parameters of lambdas."""
    variables: tuple[tuple[str, Argument], ...] = ()
    """Parameters of the lambdas around, the innermost last."""

    def find(self, column: t.Column) -> Name:
        if column.source and column.source not in self.sources:
            refuse(f"{column.source} is no source of this query{meant(column.source, self.sources)}", column)
        found = [name for name in self.names if name.column == column.name and column.source in (None, name.source)]
        if not found:
            where = [name for name in self.names if column.source in (None, name.source)]
            refuse(
                f"there is no column {_written(column)}{meant(column.name, dict.fromkeys(n.column for n in where))}",
                column,
            )
        if len(found) > 1:
            choices = " or ".join(f"{name.source}.{name.column}" for name in found)
            refuse(f"{column.name} is in more than one source: write {choices}", column)
        return found[0]

    def variable(self, name: str) -> Argument | None:
        return next((argument for known, argument in reversed(self.variables) if known == name), None)

    def with_variables(self, given: Iterable[tuple[str, Argument]]) -> "Scope":
        added = tuple(given)
        kinds = {argument.expression.options[0]: argument.type for _, argument in added}
        return replace(self, variables=(*self.variables, *added), types={**self.types, **kinds})

    def of(self, source: str) -> list[Name]:
        return [name for name in self.names if name.source == source]

    def type_of(self, expression: Expression) -> Type:
        return expression.bind(self.types).type


def _written(column: t.Column) -> str:
    return column.name if column.source is None else f"{column.source}.{column.name}"


def canonical(written: t.Expr, scope: Scope) -> t.Expr:
    """The same for the same: columns with their sources, so that expressions can be compared."""
    hidden = {name for part in written.walk() if isinstance(part, t.Lambda) for name in part.parameters}

    def change(part: t.Expr) -> t.Expr | None:
        if not isinstance(part, t.Column) or (part.source is None and part.name in hidden):
            return None
        found = scope.find(part)
        return t.Column(found.column, found.source, at=part.at)

    return t.rewritten(written, change)


def source_scope(source: DataSource, alias: str) -> Scope:
    """A record as it is read: what lies in its key, its value, its headers, and what it is known by."""
    key = e.key["key"] if source.window else e.key
    found: list[Name] = []
    for name, kind in source.keys:
        found.append(Name(alias, name, Argument(key if len(source.keys) == 1 else key[name], kind), is_key=True))
    for name, kind in source.values:
        found.append(Name(alias, name, Argument(e.value[name], kind)))
    for header in source.headers:
        place = e.headers if header.key is None else e.header(header.key)
        found.append(Name(alias, header.name, Argument(place, header.type)))
    pseudo = zip(PSEUDO.items(), (e.timestamp, e.partition, e.offset), strict=True)
    found += [Name(alias, name, Argument(place, kind), is_system=True) for (name, kind), place in pseudo]
    if source.window:
        bounds = zip(BOUNDS.items(), ("start", "end"), strict=True)
        found += [Name(alias, name, Argument(e.key[part], kind), is_system=True) for (name, kind), part in bounds]
    return Scope(tuple(found), (alias,), record_types(source.keys, source.values, source.window is not None))


def key_type(keys: Columns) -> Type:
    """One column is itself, several are a struct, none is never there."""
    if not keys:
        return STRING
    return keys[0][1] if len(keys) == 1 else Type("struct", fields=keys)


def record_types(keys: Columns, values: Columns, is_windowed: bool) -> dict[str, Type]:
    key = key_type(keys)
    return {"key": windowed(key) if is_windowed else key, "value": Type("struct", fields=values)}
