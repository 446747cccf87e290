"""Whether an application may go on with the state that an earlier version of it left.

Spark finds state by the number of a query and the place of an operator in it, not by a store's name: a version whose
stores have moved would read the state of one as that of another. So what each query keeps is written down beside its
checkpoint, and a version that does not fit is told so before anything is started.

    topology.json    {"0": {"by": "tasks", "tasks": 2, "stores": {"counts": "key-value, keys Serdes.string, ..."}}}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from ottla.pipelines.files import keep_text, kept_text, names_in
from ottla.pipelines.job import CannotStart
from ottla.streams.plan.plan import NativeAggregate, QueryPlan
from ottla.streams.run.state_directory import StateDirectory
from ottla.streams.topology.stores import StoreKind, StoreSpec

NATIVELY: Final = "Spark's own aggregate"
IN_SOURCE: Final = "the tasks that read"
BY_TASKS: Final = "tasks"
NOT_AT_ALL: Final = "nothing"


class StateDoesNotFit(CannotStart):
    """The text says what has changed and what can be done."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one query keeps from batch to batch."""

    by: str
    tasks: int
    stores: Mapping[str, str]


Shape = Mapping[str, Kept]
"""By the name of the query."""


def shape_of(queries: Sequence[QueryPlan], tasks: Callable[[QueryPlan], int]) -> Shape:
    return {query.name: _kept(query, tasks(query)) for query in queries}


def _kept(query: QueryPlan, tasks: int) -> Kept:
    stores = {store.name: _text(store) for store in query.stores}
    if query.aggregate is not None:
        return Kept(_by_aggregate(query.aggregate), tasks, stores)
    return Kept(BY_TASKS, tasks, stores) if query.keeps_state else Kept(NOT_AT_ALL, 0, {})


def _by_aggregate(native: NativeAggregate) -> str:
    """With the columns that it keeps, where those are parts of results."""
    parts = "".join(f", {part.name}" for part in native.parts)
    return f"{IN_SOURCE if native.kept_in_source else NATIVELY} ({native.aggregate.kind}{parts})"


def _text(store: StoreSpec) -> str:
    told = f"{store.kind.value}, keys {store.key_serde!r}, values {store.value_serde!r}"
    return told if store.kind is StoreKind.KEY_VALUE else f"{told}, windows of {store.window_size_ms} ms"


def conflicts(old: Shape, new: Shape) -> list[str]:
    """Why the new version cannot take the old one's state; nothing if it can. What has no state may change freely, new
    queries begin with nothing, and tasks may get further stores."""
    found: list[str] = []
    homes = {store: query for query, kept in new.items() for store in kept.stores}
    for query, was in old.items():
        now = new.get(query)
        for store in was.stores:
            home = homes.get(store)
            if home is not None and home != query:
                found.append(f"the store {store} was kept by query {query} and is now kept by query {home}")
        if now is not None:
            found += _changed(query, was, now)
    return found


def _changed(query: str, was: Kept, now: Kept) -> list[str]:
    if was.by != now.by:
        return [f"the state of query {query} was kept by {was.by} and is now kept by {now.by}"]
    if was.tasks != now.tasks:
        return [f"query {query} had {was.tasks} tasks and now has {now.tasks}: the partitions of its inputs changed"]
    if was.by != BY_TASKS and set(was.stores) != set(now.stores):
        return [f"query {query} kept the store {', '.join(was.stores)} and now keeps {', '.join(now.stores)}"]
    both = [store for store in was.stores if store in now.stores]
    return [
        f"the store {store} was: {was.stores[store]}; it is now: {now.stores[store]}"
        for store in both
        if was.stores[store] != now.stores[store]
    ]


def require_fit(directory: StateDirectory, shape: Shape) -> None:
    """Compares with what is written down in the application's folder. Raises StateDoesNotFit."""
    begun = frozenset(names_in(f"{directory.path}/checkpoints"))
    old = {query: kept for query, kept in _written(directory).items() if query in begun}
    found = conflicts(old, shape)
    if found:
        reasons = "\n".join(f"  {each}" for each in found)
        raise StateDoesNotFit(
            f"the topology has changed in a way that the state in {directory.path} does not fit:\n{reasons}\n"
            "Run the version that made it, or give this one another application id and let it begin anew beside the "
            "old one, or take it back to the start by `ottla streams reset`. Nothing was changed"
        )


def keep(directory: StateDirectory, shape: Shape) -> None:
    """Writes it down, for the next start."""
    keep_text(directory.shape, json.dumps({query: asdict(kept) for query, kept in shape.items()}))


def _written(directory: StateDirectory) -> Shape:
    text = kept_text(directory.shape)
    try:
        return {query: Kept(**kept) for query, kept in json.loads(text or "{}").items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise StateDoesNotFit(
            f"{directory.shape} cannot be read ({error}): whether the state beside it fits is not known. If it was "
            "this version that made it, delete the file"
        ) from error
