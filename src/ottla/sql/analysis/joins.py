"""FROM … JOIN …: from left to right, each step one of four kinds of join. What the key of the result may be called."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.analysis.expressions import Typing
from ottla.sql.analysis.refusals import refuse
from ottla.sql.analysis.scope import Name, Scope, canonical, record_types, source_scope
from ottla.sql.analysis.typed import Joining, Read, Side
from ottla.sql.functions.declare import Argument
from ottla.sql.model import ROWKEY, SYSTEM, WindowedKey
from ottla.sql.types import sql_text
from ottla.streams import expressions as e
from ottla.streams.windows import JoinWindows

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A key column of a row: which expressions over the sources are the same as it, from left to right."""

    same: tuple[t.Expr, ...]
    """Canonical."""
    argument: Argument
    synthetic: str | None = None
    """The name of a key that no single column holds."""

    @property
    def candidates(self) -> tuple[tuple[str, str], ...]:
        """The columns that may name it: (source, column)."""
        if self.synthetic is not None:
            return (("", self.synthetic),)
        return tuple((each.source or "", each.name) for each in self.same if isinstance(each, t.Column))

    def is_by(self, written: t.Expr) -> bool:
        return written in self.same or (self.synthetic is not None and written == t.Column(self.synthetic, ""))


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
    keys = tuple(KeyColumn((t.Column(name.column, name.source),), name.argument) for name in scope.names if name.is_key)
    return Row(read, scope, keys, read.source.window)


def joined_row(left: Row, right: Read, join: t.Join, mentioned: frozenset[str], custom: Mapping[str, Type]) -> Row:
    other = read_row(right)
    how = _how(left, other, join)
    flat_left, flat_right = flattened(left, mentioned), flattened(other, mentioned)
    kept_left, kept_right = flat_left.row, flat_right.row
    first, second = _sides(join, kept_left.scope, kept_right.scope)
    first, second = canonical(first, kept_left.scope), canonical(second, kept_right.scope)
    left_key = Typing(kept_left.scope, custom).typed(first)
    right_key = Typing(kept_right.scope, custom).typed(second)
    _check_types(left_key, right_key, join)
    left_same, right_same = _is_key(first, kept_left), _is_key(second, kept_right)
    if left.is_table and right.is_table and not left_same and right_same:
        how = "foreign-key"
    _check_keys(how, join, right_same, right)
    _check_windows(left, other, join)
    _check_partitions(how, left_same and right_same, left, right, join)
    if left.window is not None and not (left_same and right_same):
        refuse("windowed keys cannot be changed for a join: join by the key columns of both sides", join.on)
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
    return _result(joining, fields, (first, second), left_key.type, left)


def _result(joining: Joining, fields: tuple[Name, ...], on: tuple[t.Expr, t.Expr], kind: Type, before: Row) -> Row:
    sources = (*before.scope.sources, joining.right.alias)
    names = tuple(name for name in fields if name.source)
    if joining.how == "foreign-key":
        kept = Scope(names, sources, {"key": before.scope.types["key"], "value": joining.value_type})
        return Row(joining, kept, before.keys, before.window)
    key = Argument(e.key["key"] if before.window else e.key, kind)
    inherited = before.keys[0].same if not joining.sides[0].rekeyed else ()
    column = KeyColumn(tuple(dict.fromkeys((*inherited, *on))), key)
    if joining.kind == "FULL" or not column.candidates:
        # Of an outer join no side holds the key for sure.
        column = KeyColumn(() if joining.kind == "FULL" else column.same, key, _synthetic(fields))
        names = (Name("", column.synthetic or "", key, is_key=True), *names)
    types = {**record_types((("", kind),), (), before.window is not None), "value": joining.value_type}
    return Row(joining, Scope(names, sources, types), (column,), before.window)


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
        Name(
            name.source,
            name.column,
            Argument(e.value[field_name(name)], name.argument.type),
            name.is_key,
            name.is_system,
        )
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


def _check_types(left: Argument, right: Argument, join: t.Join) -> None:
    if left.type != right.type:
        refuse(
            f"both sides of ON need one type, but they are {sql_text(left.type)} and {sql_text(right.type)}: CAST one",
            join.on,
        )


def _is_key(written: t.Expr, row: Row) -> bool:
    """Whether it is the one key column that the record has."""
    return len(row.keys) == 1 and row.keys[0].is_by(written)


def _check_keys(how: str, join: t.Join, right_same: bool, right: Read) -> None:
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


def _check_windows(left: Row, right: Row, join: t.Join) -> None:
    kinds = [None if row.window is None else row.window.kind for row in (left, right)]
    if (kinds[0] is None) != (kinds[1] is None) or (kinds[0] == "SESSION") != (kinds[1] == "SESSION"):
        told = [each or "not windowed" for each in kinds]
        refuse(f"windowed keys join with windowed keys of one kind, but they are {told[0]} and {told[1]}", join)


def _check_partitions(how: str, stays: bool, left: Row, right: Read, join: t.Join) -> None:
    """As far as they are known. What is partitioned anew is given as many as the other side has."""
    first = left.source
    while isinstance(first, Joining):
        first = first.left
    counts = first.source.partitions, right.source.partitions
    if how != "foreign-key" and stays and None not in counts and counts[0] != counts[1]:
        refuse(
            f"{first.alias} has {counts[0]} partitions and {right.alias} {counts[1]}, so that equal keys do not meet: "
            "give one of them as many as the other by CREATE ... WITH (PARTITIONS=...) AS SELECT",
            join,
        )


def _windows(join: t.Join, how: str) -> JoinWindows | None:
    if how != "stream-stream":
        return None
    assert join.within is not None
    before, after = join.within.before.ms, join.within.after.ms
    if join.within.grace is None:
        return JoinWindows.eager(before_ms=before, after_ms=after, grace_ms=DAY_MS)
    return JoinWindows.between(before_ms=before, after_ms=after, grace_ms=join.within.grace.ms)
