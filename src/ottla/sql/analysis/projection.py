"""The SELECT list: stars taken apart, results named, and which of them are the key."""

import re
from dataclasses import dataclass
from typing import Final

from ottla.sql import tree as t
from ottla.sql.analysis.expressions import Typing
from ottla.sql.analysis.joins import KeyColumn, Row, field_name
from ottla.sql.analysis.refusals import refuse
from ottla.sql.analysis.scope import Scope, canonical
from ottla.sql.model import BOUNDS, SYSTEM
from ottla.sql.types import sql_text

_GENERATED: Final = re.compile(r"KSQL_COL_\d+")


@dataclass(frozen=True, slots=True)
class Selected:
    name: str
    expression: t.Expr
    """Canonical: every column says its source."""
    node: t.Node


class Names:
    """Names for what has none: KSQL_COL_0, …, and those of fields."""

    def __init__(self, scope: Scope) -> None:
        self._taken = {name.column for name in scope.names if name.column not in SYSTEM}
        self._next = 0

    def column(self) -> str:
        while (name := f"KSQL_COL_{self._next}") in self._taken:
            self._next += 1
        self._next += 1
        return name

    def field(self, field: str) -> str:
        number, name = 0, field
        while name in self._taken:
            number += 1
            name = f"{field}_{number}"
        self._taken.add(name)
        return name


def plain_name(column: t.Column, scope: Scope) -> str:
    """Of a column that is selected as it is: its own, with the source in front where two have it."""
    found = scope.find(column)
    clashes = [name for name in scope.names if name.column == found.column]
    return found.column if len(clashes) == 1 or not found.source else f"{found.source}_{found.column}"


def selected(query: t.Query, row: Row, typing: Typing, *, stored: bool = True) -> list[Selected]:
    """In a result that is not stored, `*` has the bounds of windows in it, and ROWTIME may be a column."""
    names = Names(row.scope)
    moved = bool(query.partition_by)
    found: list[Selected] = []
    for item in query.items:
        if isinstance(item, t.Star):
            shown = SYSTEM if moved and len(row.scope.sources) > 1 else () if stored else tuple(BOUNDS)
            found += _starred(item, row, shown=shown, moved=moved)
        elif isinstance(item.expression, t.Dereference) and item.expression.field == "*":
            found += _fields(item, item.expression, row, typing, names)
        else:
            found.append(_one(item, row.scope, names, stored=stored))
    found = _with_new_keys(query, row.scope, found, names)
    seen: dict[str, Selected] = {}
    for each in found:
        if each.name in seen:
            refuse(f"two results are called {each.name}: give one of them another name with AS", each.node)
        seen[each.name] = each
    return found


def _with_new_keys(query: t.Query, scope: Scope, found: list[Selected], names: Names) -> list[Selected]:
    """`*` is all that the record has behind PARTITION BY: the new key, too."""
    if not any(isinstance(item, t.Star) and item.source is None for item in query.items):
        return found
    there = [each.expression for each in found]
    added = []
    for key in query.partition_by:
        written = canonical(key, scope)
        nothing = isinstance(written, t.Literal) and written.value is None
        if written not in there and not nothing:
            name = plain_name(written, scope) if isinstance(written, t.Column) else None
            added.append(Selected(name, written, key) if name else _one(t.Item(key, at=key.at), scope, names))
    return [*added, *found]


def _one(item: t.Item, scope: Scope, names: Names, *, stored: bool = True) -> Selected:
    written = canonical(item.expression, scope)
    if item.alias is not None:
        if item.alias in SYSTEM:
            refuse(f"{item.alias} is there in every record, so that no result can have this name", item)
        return Selected(item.alias, written, item)
    if isinstance(written, t.Column):
        name = plain_name(written, scope)
        if name in SYSTEM and stored:
            refuse(f"{name} needs another name as a result: {name} AS ...", item)
        return Selected(name, written, item)
    if isinstance(written, t.Dereference):
        return Selected(names.field(written.field), written, item)
    return Selected(names.column(), written, item)


def _starred(star: t.Star, row: Row, *, shown: tuple[str, ...], moved: bool) -> list[Selected]:
    """`moved`: the key is another one by now, so that the old one is the last of the values."""
    scope = row.scope
    if star.source is not None and star.source not in scope.sources:
        refuse(f"{star.source} is no source of this query: there are {', '.join(scope.sources)}", star)
    joined = len(scope.sources) > 1
    names = [each for each in scope.names if star.source in (None, each.source)]
    if moved:
        places = {source: place for place, source in enumerate(("", *scope.sources))}
        names.sort(key=lambda each: (places[each.source], each.is_key, each.is_system))
    return [
        Selected(field_name(name) if joined else name.column, t.Column(name.column, name.source, at=star.at), star)
        for name in names
        if name.column not in SYSTEM or name.column in shown
    ]


def _fields(item: t.Item, written: t.Dereference, row: Row, typing: Typing, names: Names) -> list[Selected]:
    base = canonical(written.base, row.scope)
    kind = typing.typed(base).type
    if kind.name != "struct":
        refuse(f"->* takes the fields of a STRUCT, not of {sql_text(kind)}", item)
    if item.alias is not None:
        refuse("->* stands for several results, so that it has no alias", item)
    return [Selected(names.field(name), t.Dereference(base, name, at=written.at), item) for name, _ in kind.fields]


# ---- which of them are the key


def key_of_row(found: list[Selected], row: Row, node: t.Node) -> list[Selected]:
    """The results that are the record's key columns, in the order of the key."""
    return [_of_key(found, key, row, node) for key in row.keys]


def _of_key(found: list[Selected], key: KeyColumn, row: Row, node: t.Node) -> Selected:
    candidates = key.candidates
    for source, column in candidates:
        matching = [
            each
            for each in found
            if isinstance(each.expression, t.Column)
            and (each.expression.source, each.expression.name) == (source, column)
        ]
        if matching:
            return _once(matching, column or "")
    one = len(row.scope.sources) == 1
    shown = [column or "" if one or not source else f"{source}.{column}" for source, column in candidates]
    names = " or ".join(shown)
    column = candidates[0][1]
    refuse(
        f"{names} is the key: add it to the SELECT list, or AS_VALUE({column}) to have it in the value too"
        if len(candidates) == 1
        else f"the key is missing in the SELECT list: add {names}",
        node,
    )


def _once(matching: list[Selected], column: str) -> Selected:
    if len(matching) > 1:
        names = ", ".join(each.name for each in matching)
        refuse(
            f"the key {column} is selected more than once ({names}): write AS_VALUE({column}) for all but one",
            matching[1].node,
        )
    return matching[0]


def kept_keys(found: list[Selected], row: Row) -> tuple[str, ...]:
    """The results that are key columns as they were, with the bounds of a window, which are part of the key."""
    candidates = {each for key in row.keys for each in key.candidates}
    if row.window is not None:
        candidates |= {(source, bound) for source in row.scope.sources for bound in BOUNDS}
    return tuple(
        each.name
        for each in found
        if isinstance(each.expression, t.Column) and (each.expression.source, each.expression.name) in candidates
    )


def key_of_expressions(found: list[Selected], keys: tuple[t.Expr, ...], what: str) -> list[Selected]:
    """The results that are what the query groups or partitions by."""
    chosen = []
    for place, key in enumerate(keys):
        if key in keys[:place]:
            refuse(f"{what} names the same twice", key)
        matching = [each for each in found if each.expression == key]
        if not matching:
            from ottla.sql.text import text_of  # noqa: PLC0415  for the message alone

            shown = text_of(_unqualified(key))
            refuse(
                f"{shown} is the key by {what}: add it to the SELECT list, or AS_VALUE({shown}) to have it in the "
                "value too",
                key,
            )
        chosen.append(_once(matching, matching[0].name))
    return chosen


def _unqualified(written: t.Expr) -> t.Expr:
    return t.rewritten(written, lambda part: t.Column(part.name) if isinstance(part, t.Column) else None)
