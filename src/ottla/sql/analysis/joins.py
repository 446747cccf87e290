"""FROM … JOIN …: from left to right, each step one of four kinds of join. What the key of the result may be called."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ottla.serdes.types import Type
from ottla.sql import operators as o
from ottla.sql import tree as t
from ottla.sql.analysis.expressions import Typing
from ottla.sql.analysis.refusals import refuse
from ottla.sql.analysis.scope import Name, Scope, record_types, source_scope
from ottla.sql.analysis.typed import Joining, Read, Side
from ottla.sql.functions.coercions import united
from ottla.sql.functions.declare import Argument
from ottla.sql.model import ROWKEY, SYSTEM, WindowedKey
from ottla.sql.types import sql_text
from ottla.streams import expressions as e
from ottla.streams.windows import JoinWindows

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A key column of a row: which columns of sources hold the same, the best name first."""

    candidates: tuple[tuple[str, str], ...]
    """(source, column)"""
    argument: Argument
    synthetic: str | None = None
    """The name of a key that no single column holds."""


@dataclass(frozen=True, slots=True)
class Row:
    """What reaches WHERE: a record, its names, its key."""

    source: Read | Joining
    scope: Scope
    keys: tuple[KeyColumn, ...]
    window: WindowedKey | None

    @property
    def is_table(self) -> bool:
        return self.source.is_table


def read_row(read: Read) -> Row:
    scope = source_scope(read.source, read.alias)
    keys = tuple(KeyColumn(((name.source, name.column),), name.argument) for name in scope.names if name.is_key)
    return Row(read, scope, keys, read.source.window)


def joined_row(left: Row, right: Read, join: t.Join, mentioned: frozenset[str], custom: Mapping[str, Type]) -> Row:
    other = read_row(right)
    how = _how(left, other, join)
    flat_left, flat_right = flattened(left, mentioned), flattened(other, mentioned)
    kept_left, kept_right = flat_left.row, flat_right.row
    first, second = _sides(join, kept_left.scope, kept_right.scope)
    left_key = Typing(kept_left.scope, custom).typed(first)
    right_key = Typing(kept_right.scope, custom).typed(second)
    left_key, right_key = _of_one_type(left_key, right_key, join)
    left_same, right_same = _is_key(first, kept_left), _is_key(second, kept_right)
    if left.is_table and right.is_table and not left_same and right_same:
        how = "foreign-key"
    _check_keys(how, join, left_same, right_same, right)
    _check_windows(left, other, join)
    fields = (*kept_left.scope.names, *kept_right.scope.names)
    value = Type("struct", fields=tuple((field_name(name), name.argument.type) for name in fields))
    joining = Joining(
        left.source,
        right,
        join.kind,
        how,
        (
            Side(flat_left.fields(left), left_key, how != "foreign-key" and not left_same),
            Side(flat_right.fields(other), right_key, not right_same),
        ),
        _windows(join, how),
        value,
    )
    return _result(joining, kept_left, fields, (first, left_key), (second, right_key), left)


def _result(
    joining: Joining,
    left: Row,
    fields: tuple[Name, ...],
    first: tuple[t.Expr, Argument],
    second: tuple[t.Expr, Argument],
    before: Row,
) -> Row:
    sources = (*left.scope.sources, joining.right.alias)
    if joining.how == "foreign-key":
        keys = before.keys
        kept = Scope(fields, sources, {"key": before.scope.types["key"], "value": joining.value_type})
        return Row(joining, kept, keys, before.window)
    kind = first[1].type
    key = e.key["key"] if before.window else e.key
    names = [found for found in (_plain(first[0], left.scope, before), _plain(second[0], None, None, joining)) if found]
    inherited = before.keys[0].candidates if len(before.keys) == 1 and names and _same_key(before, names) else ()
    candidates = tuple(dict.fromkeys((*inherited, *names)))
    synthetic = None
    if joining.kind == "FULL" or not candidates:
        synthetic, candidates = _synthetic(fields), ()
    types = record_types((("", kind),), (), before.window is not None)
    types["value"] = joining.value_type
    names_now = fields
    if synthetic is not None:
        names_now = (Name("", synthetic, Argument(key, kind), is_key=True), *fields)
    column = KeyColumn(candidates, Argument(key, kind), synthetic)
    return Row(joining, Scope(names_now, sources, types), (column,), before.window)


def _same_key(before: Row, names: list[tuple[str, str]]) -> bool:
    return any(name in before.keys[0].candidates for name in names)


def _plain(
    written: t.Expr, scope: Scope | None, _: Row | None, joining: Joining | None = None
) -> tuple[str, str] | None:
    """The column, if the side of ON is just that."""
    if not isinstance(written, t.Column):
        return None
    if scope is not None:
        found = scope.find(written)
        return (found.source, found.column) if found.source else None
    assert joining is not None
    return joining.right.alias, written.name


def _synthetic(fields: tuple[Name, ...]) -> str:
    taken = {name.column for name in fields}
    return next(name for number in range(1000) if (name := f"{ROWKEY}_{number}" if number else ROWKEY) not in taken)


# ---- making sides ready


def field_name(name: Name) -> str:
    return f"{name.source}_{name.column}" if name.source else name.column


@dataclass(frozen=True, slots=True)
class Flat:
    """A row once all of its names lie in the value."""

    row: Row

    def fields(self, before: Row) -> tuple[tuple[str, Argument], ...]:
        """From the record as it comes to that value."""
        wanted = {(name.source, name.column) for name in self.row.scope.names}
        return tuple(
            (field_name(name), name.argument) for name in before.scope.names if (name.source, name.column) in wanted
        )


def flattened(row: Row, mentioned: frozenset[str]) -> Flat:
    """System columns only if somebody asks for them."""
    names = tuple(
        Name(name.source, name.column, Argument(e.value[field_name(name)], name.argument.type), name.is_key)
        for name in row.scope.names
        if name.column not in SYSTEM or name.column in mentioned
    )
    value = Type("struct", fields=tuple((field_name(name), name.argument.type) for name in names))
    return Flat(replace(row, scope=Scope(names, row.scope.sources, {**row.scope.types, "value": value})))


# ---- rules


def _how(left: Row, right: Row, join: t.Join) -> str:
    if not left.is_table and not right.is_table:
        if join.within is None:
            refuse("a join of two streams needs a window of time: JOIN ... WITHIN 1 HOUR ON ...", join)
        return "stream-stream"
    if join.within is not None:
        refuse("WITHIN is for joins of two streams: leave it out", join.within)
    if left.is_table and not right.is_table:
        refuse(f"a table cannot be joined with the stream {join.source.name}: name the stream first", join)
    if left.is_table:
        return "table-table"
    if join.kind not in ("INNER", "LEFT"):
        refuse(
            f"a stream joined with a table is an INNER or LEFT JOIN, not {join.kind}: the table never triggers", join
        )
    return "stream-table"


def _sides(join: t.Join, left: Scope, right: Scope) -> tuple[t.Expr, t.Expr]:
    """The two sides of the one equality, the left source's first."""
    on = join.on
    if not isinstance(on, t.Binary) or on.operator != "=":
        refuse("ON takes one equality: ON a.x = b.y", on)
    sides = [(_sources_of(each, left, right), each) for each in (on.left, on.right)]
    kinds = [found for found, _ in sides]
    if kinds == ["left", "right"]:
        return on.left, on.right
    if kinds == ["right", "left"]:
        return on.right, on.left
    refuse(
        f"one side of ON is about {join.source.called} alone, the other about the sources before it: ON a.x = b.y", on
    )


def _sources_of(written: t.Expr, left: Scope, right: Scope) -> str:
    both = Scope((*left.names, *right.names), (*left.sources, *right.sources), {})
    parameters = {name for part in written.walk() if isinstance(part, t.Lambda) for name in part.parameters}
    found = {
        "right" if both.find(part).source in right.sources else "left"
        for part in written.walk()
        if isinstance(part, t.Column) and not (part.source is None and part.name in parameters)
    }
    return found.pop() if len(found) == 1 else "both"


def _of_one_type(left: Argument, right: Argument, join: t.Join) -> tuple[Argument, Argument]:
    if left.type == right.type:
        return left, right
    kind = united(left.type, right.type)
    if kind is None or not left.type.is_number:
        refuse(
            f"both sides of ON need one type, but they are {sql_text(left.type)} and {sql_text(right.type)}: CAST one",
            join.on,
        )
    return o.as_type(left, kind), o.as_type(right, kind)


def _is_key(written: t.Expr, row: Row) -> bool:
    """Whether it is the one key column that the record has."""
    if not isinstance(written, t.Column) or len(row.keys) != 1:
        return False
    name = row.scope.find(written)
    key = row.keys[0]
    return (name.source, name.column) in key.candidates or (key.synthetic is not None and name.column == key.synthetic)


def _check_keys(how: str, join: t.Join, left_same: bool, right_same: bool, right: Read) -> None:
    if how in ("stream-table", "table-table", "foreign-key") and not right_same:
        key = " and ".join(name for name, _ in right.source.keys)
        more = ", which has several columns" if len(right.source.keys) > 1 else ""
        refuse(
            f"the table {join.source.called} is joined by its PRIMARY KEY {key}{more}: ON ... = "
            f"{join.source.called}.{right.source.keys[0][0]}",
            join.on,
        )
    if how == "foreign-key" and join.kind not in ("INNER", "LEFT"):
        refuse(f"a join by foreign key is an INNER or LEFT JOIN, not {join.kind}", join)
    del left_same


def _check_windows(left: Row, right: Row, join: t.Join) -> None:
    kinds = [None if row.window is None else row.window.kind for row in (left, right)]
    if (kinds[0] is None) != (kinds[1] is None) or (kinds[0] == "SESSION") != (kinds[1] == "SESSION"):
        told = [each or "not windowed" for each in kinds]
        refuse(f"windowed keys join with windowed keys of one kind, but they are {told[0]} and {told[1]}", join)


def _windows(join: t.Join, how: str) -> JoinWindows | None:
    if how != "stream-stream":
        return None
    assert join.within is not None
    before, after = join.within.before.ms, join.within.after.ms
    if join.within.grace is None:
        return JoinWindows.eager(before_ms=before, after_ms=after, grace_ms=DAY_MS)
    return JoinWindows.between(before_ms=before, after_ms=after, grace_ms=join.within.grace.ms)
