"""A whole query: sources, joins, filter, table functions, grouping, projection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.serdes.types import NULL, Type
from ottla.sql import tree as t
from ottla.sql.analysis import projection
from ottla.sql.analysis.expressions import Typing, has_aggregate
from ottla.sql.analysis.grouping import grouped
from ottla.sql.analysis.joins import Row, flattened, joined_row, read_row
from ottla.sql.analysis.own_functions import is_table_function, resolved, table_function
from ottla.sql.analysis.projection import Selected
from ottla.sql.analysis.refusals import at, refuse
from ottla.sql.analysis.scope import Name, canonical
from ottla.sql.analysis.typed import Exploded, Read, TypedQuery
from ottla.sql.analysis.windows import windowed_key
from ottla.sql.functions.declare import Argument
from ottla.sql.functions.python import PythonFunction
from ottla.sql.model import PSEUDO, SYSTEM, WINDOWEND, WINDOWSTART, DataSource
from ottla.streams import expressions as e
from ottla.streams.expressions import Aggregate, Expression

Find = Callable[[t.Source], DataSource]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a query may name."""

    find: Find
    """A source by its name; refuses what is not there."""
    custom: Mapping[str, Type]
    functions: Mapping[str, PythonFunction] = field(default_factory=dict)
    """That statements made."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Of aggregates, by their kind: how many values they keep of a group."""


def analysed(query: t.Query, around: Vocabulary, *, stored: bool = True) -> TypedQuery:
    """`stored`: the result goes into a topic, so that its key has to be in the projection."""
    query = resolved(query, around.functions)
    row = _row(query, around)
    _check_clauses(query, row)
    if stored and query.limit is not None:
        refuse("LIMIT is for queries whose rows are shown: one that goes into a topic has no end", query)
    typing = Typing(row.scope, around.custom)
    where = None if query.where is None else typing.condition(canonical(query.where, row.scope), "WHERE")
    found = projection.selected(query, _with_bounds(row, query), typing, stored=stored)
    before = row
    row, exploded, typing = _exploded(query, row, typing, found)
    if query.group_by:
        made = _aggregated(query, before, row, typing, where, exploded, found)
        return _limited(made, around.limits) if around.limits else made
    return _projected(query, before, row, typing, where, exploded, found, stored=stored)


def _row(query: t.Query, around: Vocabulary) -> Row:
    sources = [query.source, *(join.source for join in query.joins)]
    names = [source.called for source in sources]
    for place, source in enumerate(sources):
        if source.called in names[:place]:
            refuse(f"two sources are called {source.called}: give one an alias", source)
    mentioned = _mentioned(query)
    row = read_row(Read(around.find(query.source), query.source.called))
    for join in query.joins:
        row = joined_row(row, Read(around.find(join.source), join.source.called), join, mentioned, around.custom)
    return row


def _mentioned(query: t.Query) -> frozenset[str]:
    written = [item.expression for item in query.items if isinstance(item, t.Item)]
    written += [each for each in (query.where, query.having) if each is not None]
    written += [*query.group_by, *query.partition_by, *(join.on for join in query.joins)]
    named = [part.name for each in written for part in each.walk() if isinstance(part, t.Column)]
    stars = any(isinstance(item, t.Star) for item in query.items)
    return frozenset((*named, *(PSEUDO if stars and query.partition_by else ())))


def _check_clauses(query: t.Query, row: Row) -> None:
    if query.window is not None and not query.group_by:
        refuse("WINDOW is for aggregates: add GROUP BY", query.window)
    if query.window is not None and row.is_table:
        refuse("WINDOW is for aggregates of streams: a table has no events", query.window)
    if query.having is not None and not query.group_by:
        refuse("HAVING filters aggregates: add GROUP BY, or write WHERE", query.having)
    if query.group_by and query.partition_by:
        refuse("GROUP BY makes the key already: leave PARTITION BY out", query.partition_by[0])
    if query.partition_by and row.is_table:
        refuse("PARTITION BY is for streams: the key of a table is what its rows are", query.partition_by[0])
    if not query.group_by:
        for item in query.items:
            if isinstance(item, t.Item) and has_aggregate(item.expression):
                refuse("an aggregate needs GROUP BY, which says over which rows it goes", item)
    if query.emit == "FINAL" and query.window is None:
        refuse("EMIT FINAL is for aggregates over windows, which come to an end: write EMIT CHANGES", query)


def _with_bounds(row: Row, query: t.Query) -> Row:
    """In a windowed aggregate WINDOWSTART and WINDOWEND are names as well."""
    if query.window is None or any(name.column == WINDOWSTART for name in row.scope.names):
        return row
    source = row.scope.sources[0]
    bounds = tuple(
        Name(source, name, Argument(e.timestamp, row.scope.type_of(e.timestamp)), is_system=True)
        for name in (WINDOWSTART, WINDOWEND)
    )
    return replace(row, scope=replace(row.scope, names=(*row.scope.names, *bounds)))


# ---- table functions


def _exploded(
    query: t.Query, row: Row, typing: Typing, found: Sequence[Selected]
) -> tuple[Row, Exploded | None, Typing]:
    written = [each.expression for each in found]
    written += [canonical(each, row.scope) for each in (*query.group_by, *query.partition_by)]
    calls = list(
        dict.fromkeys(
            part for each in written for part in each.walk() if isinstance(part, t.Call) and is_table_function(part)
        )
    )
    if not calls:
        return row, None, typing
    if row.is_table:
        refuse(f"{calls[0].name} makes several rows of one, which a table cannot have under one key", calls[0])
    mentioned = frozenset(each for each in SYSTEM if any(_names(part, each) for part in written))
    flat = flattened(row, mentioned)
    lists = [(f"TF_{place}", _list(call, typing)) for place, call in enumerate(calls)]
    known = {call: Argument(e.value[name], _element(made)) for call, (name, made) in zip(calls, lists, strict=True)}
    value = Type(
        "struct",
        fields=(
            *((name, argument.type) for name, argument in flat.fields(row)),
            *((name, _element(made)) for name, made in lists),
        ),
    )
    scope = replace(flat.row.scope, types={**row.scope.types, "value": value})
    after = Typing(scope, typing.custom, _looked_up(known))
    return replace(flat.row, scope=scope), Exploded(flat.fields(row), tuple(lists)), after


def _looked_up(known: Mapping[t.Call, Argument]) -> Callable[[t.Expr], Argument | None]:
    return lambda written: known.get(written) if isinstance(written, t.Call) else None


def _names(written: t.Expr, name: str) -> bool:
    return any(isinstance(part, t.Column) and part.name == name for part in written.walk())


def _list(call: t.Call, typing: Typing) -> Argument:
    with at(call):
        made = table_function(call).make(typing.all(call.arguments))
        return Argument(made, typing.scope.type_of(made))


def _element(made: Argument) -> Type:
    assert made.type.element is not None
    return made.type.element


# ---- the result


def _aggregated(
    query: t.Query,
    before: Row,
    row: Row,
    typing: Typing,
    where: Expression | None,
    exploded: Exploded | None,
    found: list[Selected],
) -> TypedQuery:
    done = grouped(query, _with_bounds(row, query), typing, found)
    keys = tuple((key.name, _typed(key, done.after)) for key in done.keys)
    values = tuple((each.name, _typed(each, done.after)) for each in found if each not in done.keys)
    _check_values(values, query)
    window = None if query.window is None else windowed_key(query.window)
    return TypedQuery(
        before.source, where, exploded, done.grouping, keys, False, values, True, window, query.emit == "FINAL"
    )


def _limited(made: TypedQuery, limits: Mapping[str, int]) -> TypedQuery:
    assert made.grouping is not None
    aggregates = tuple((name, _with_limit(each, limits)) for name, each in made.grouping.aggregates)
    return replace(made, grouping=replace(made.grouping, aggregates=aggregates))


def _with_limit(aggregate: Aggregate, limits: Mapping[str, int]) -> Aggregate:
    if aggregate.kind not in limits:
        return aggregate
    return Aggregate(aggregate.kind, aggregate.arguments, {**aggregate.options, "limit": limits[aggregate.kind]})


def _projected(
    query: t.Query,
    before: Row,
    row: Row,
    typing: Typing,
    where: Expression | None,
    exploded: Exploded | None,
    found: list[Selected],
    *,
    stored: bool,
) -> TypedQuery:
    window = row.window
    if query.partition_by:
        window = None
        by = tuple(canonical(each, row.scope) for each in query.partition_by)
        nothing = len(by) == 1 and isinstance(by[0], t.Literal) and by[0].value is None
        chosen = [] if nothing else projection.key_of_expressions(found, by, "PARTITION BY")
        changes = True
    elif stored:
        chosen = projection.key_of_row(found, row, query)
        own = [key.synthetic or _column_of(each) for key, each in zip(row.keys, chosen, strict=True)]
        changes = len(chosen) > 1 and [each.name for each in chosen] != own
    else:
        chosen, changes = [], False
    keys = tuple((key.name, _typed(key, typing)) for key in chosen)
    if stored and not query.partition_by:
        keys = tuple((each.name, key.argument) for each, key in zip(chosen, row.keys, strict=True))
    values = tuple((each.name, _typed(each, typing)) for each in found if each not in chosen)
    if stored:
        _check_values(values, query)
    kept = () if stored or query.partition_by else projection.kept_keys(found, row)
    return TypedQuery(before.source, where, exploded, None, keys, changes, values, row.is_table, window, kept_keys=kept)


def _column_of(chosen: Selected) -> str:
    assert isinstance(chosen.expression, t.Column)
    return chosen.expression.name


def _typed(each: Selected, typing: Typing) -> Argument:
    found = typing.typed(each.expression)
    if found.type == NULL:
        refuse(f"{each.name} is NULL and has no type: write CAST(NULL AS ...)", each.node)
    return found


def _check_values(values: tuple[tuple[str, Argument], ...], query: t.Query) -> None:
    if not values:
        refuse("the SELECT list has key columns only, so that records would have no value: add a column", query)
