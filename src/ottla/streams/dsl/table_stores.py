"""From `Materialized` to the store of a table: its name, its kind and how long it keeps windows."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.options import Materialized
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.stores import StoreKind, StoreSpec
from ottla.streams.topology.topology import segment_interval
from ottla.streams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

if TYPE_CHECKING:
    from ottla.serdes.base import Serde


TimeWindow = TimeWindows | SlidingWindows | UnlimitedWindows
"""Windows that have a size, and so are told by their start alone."""


def as_materialized(materialized: "Materialized[Any, Any] | str | None") -> "Materialized[Any, Any] | None":
    """A store's name alone will do."""
    return Materialized(materialized) if isinstance(materialized, str) else materialized


def named_store(
    draft: Draft, materialized: "Materialized[Any, Any] | str | None", prefix: str
) -> "tuple[Materialized[Any, Any], bool]":
    """With a name in any case, and whether the user gave it: only then can the store be queried."""
    said = as_materialized(materialized) or Materialized()
    if said.name is not None:
        return said, True
    return replace(said, name=draft.new_store_name(prefix)), False


def key_value_store(
    said: "Materialized[Any, Any]", key_serde: "Serde[Any] | None", value_serde: "Serde[Any] | None"
) -> StoreSpec:
    """A versioned one where a history is asked for."""
    plain = _store(said, StoreKind.KEY_VALUE, key_serde, value_serde)
    if said.history_retention_ms is None:
        return plain
    return replace(
        plain,
        kind=StoreKind.VERSIONED,
        caching=False,
        retention_ms=said.history_retention_ms,
        segment_interval_ms=segment_interval(plain.name, said.history_retention_ms, said.segment_interval_ms),
    )


def _store(
    said: "Materialized[Any, Any]",
    kind: StoreKind,
    key_serde: "Serde[Any] | None",
    value_serde: "Serde[Any] | None",
) -> StoreSpec:
    return StoreSpec(
        said.name or "",
        kind,
        key_serde,
        value_serde,
        logged=said.logged,
        changelog_config=said.changelog_config,
        caching=said.caching,
        in_memory=None if said.store_type is None else said.store_type == "in_memory",
    )


def _not_versioned(said: "Materialized[Any, Any]") -> None:
    if said.history_retention_ms is not None:
        raise TopologyError(f"store {said.name} holds windows, which have no versions: leave history_retention_ms out")


def time_store(
    said: "Materialized[Any, Any]",
    windows: TimeWindow,
    key_serde: "Serde[Any] | None",
    value_serde: "Serde[Any] | None",
) -> StoreSpec:
    _not_versioned(said)
    if isinstance(windows, SlidingWindows):
        # What is to the left of a record is found in windows that begin up to twice the difference before it.
        retention = _retention(said, 2 * windows.difference_ms, windows.grace_ms, "twice the time difference")
    else:
        retention = _retention(said, windows.size_ms, windows.grace_ms, "window size")
    return replace(
        _store(said, StoreKind.WINDOW, key_serde, value_serde),
        window_size_ms=windows.size_ms,
        retention_ms=retention,
    )


def session_store(
    said: "Materialized[Any, Any]",
    windows: SessionWindows,
    key_serde: "Serde[Any] | None",
    value_serde: "Serde[Any] | None",
) -> StoreSpec:
    _not_versioned(said)
    return replace(
        _store(said, StoreKind.SESSION, key_serde, value_serde),
        timestamped=False,
        retention_ms=_retention(said, windows.gap_ms, windows.grace_ms, "gap"),
    )


def _retention(said: "Materialized[Any, Any]", size_ms: int, grace_ms: int, what: str) -> int:
    needed = size_ms + grace_ms
    if said.retention_ms is None:
        return needed
    if said.retention_ms < needed:
        raise TopologyError(
            f"store {said.name} has to keep windows for at least {what} and grace, {size_ms} + {grace_ms} ms: "
            f"retention_ms={said.retention_ms} is too short"
        )
    return said.retention_ms
