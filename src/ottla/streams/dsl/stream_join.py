"""The windowed join of two streams: its nodes and stores, under Kafka's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams.dsl.draft import Draft
from ottla.streams.dsl.options import StreamJoined
from ottla.streams.dsl.steps import OperationStep, Step, StreamJoinStep
from ottla.streams.topology.operations import BufferSide, Function, StreamStreamJoin
from ottla.streams.topology.stores import StoreKind, StoreSpec
from ottla.streams.windows import JoinWindows

if TYPE_CHECKING:
    from ottla.serdes.base import Serde


@dataclass(frozen=True, slots=True)
class StreamSide:
    step: Step
    value_serde: "Serde[Any] | None"


@dataclass(frozen=True, slots=True)
class _Names:
    windowed: tuple[str, str]
    joins: tuple[str, str]
    stores: tuple[str, str]
    outer_store: str
    merge: str


def add_stream_join(
    draft: Draft,
    sides: tuple[StreamSide, StreamSide],
    said: "StreamJoined[Any, Any, Any]",
    name: str | None,
    how: tuple[Function, bool, JoinWindows],
    *,
    left_outer: bool,
    right_outer: bool,
    key_serde: "Serde[Any] | None",
) -> Step:
    """`how`: the joiner, whether it is given the key, and the windows."""
    joiner, with_key, windows = how
    names = _names(draft, name, said.store_name, left_outer, right_outer)
    serdes = (said.value_serde or sides[0].value_serde, said.other_value_serde or sides[1].value_serde)
    stores = [
        _buffer(store, said, windows, key_serde, serde) for store, serde in zip(names.stores, serdes, strict=True)
    ]
    waits = left_outer and not windows.is_eager
    outer_store = _outer_store(names.outer_store, said, windows, key_serde) if waits else None
    for side, store, windowed in zip(sides, stores, names.windowed, strict=True):
        _add_buffer(draft, side.step, store, windowed)
    waiting = outer_store.name if outer_store else None
    joins = [
        (
            names.joins[side],
            StreamStreamJoin(
                other_store=stores[1 - side].name,
                joiner=joiner,
                windows=windows,
                is_left_side=side == 0,
                outer=left_outer if side == 0 else right_outer,
                outer_store=waiting,
                with_key=with_key,
            ),
            stores[1 - side],
        )
        for side in (0, 1)
    ]
    step = StreamJoinStep(names.merge, names.windowed, joins, outer_store, keeps_null_keys=left_outer)
    draft.add(step, sides[0].step, sides[1].step)
    return step


def _names(draft: Draft, name: str | None, store_name: str | None, left_outer: bool, right_outer: bool) -> _Names:
    this_suffix = "-outer-this-join" if right_outer else "-this-join"
    other_suffix = "-outer-other-join" if left_outer else "-other-join"
    windowed = (
        draft.named(name, "KSTREAM-WINDOWED-", "-this-windowed"),
        draft.named(name, "KSTREAM-WINDOWED-", "-other-windowed"),
    )
    this = draft.new_name("KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-")
    other = draft.new_name("KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-")
    stores = (store_name + this_suffix, store_name + other_suffix) if store_name else (this, other)
    if store_name:
        outer = store_name + ("-outer-shared-join" if right_outer else "-left-shared-join")
    else:
        outer = f"KSTREAM-OUTERSHARED-{this[-10:]}"
    return _Names(
        windowed,
        (name + this_suffix, name + other_suffix) if name else (this, other),
        (f"{stores[0]}-store", f"{stores[1]}-store"),
        f"{outer}-store",
        draft.named(name, "KSTREAM-MERGE-", "-merge"),
    )


def _add_buffer(draft: Draft, parent: Step, store: StoreSpec, name: str) -> None:
    operation = BufferSide(store.name)
    draft.add(OperationStep(name, lambda: operation, own_stores=lambda: (store,)), parent)


def _buffer(
    name: str,
    said: "StreamJoined[Any, Any, Any]",
    windows: JoinWindows,
    key_serde: "Serde[Any] | None",
    value_serde: "Serde[Any] | None",
) -> StoreSpec:
    return StoreSpec(
        name,
        StoreKind.WINDOW,
        key_serde,
        value_serde,
        timestamped=False,
        logged=said.logging is not False,
        # Compaction would keep one of several records with the same key and time.
        changelog_config={**_config(said.logging), "cleanup.policy": "delete"},
        window_size_ms=windows.size_ms,
        retention_ms=windows.size_ms + windows.grace_ms,
        retain_duplicates=True,
        in_memory=False,
    )


def _outer_store(
    name: str, said: "StreamJoined[Any, Any, Any]", windows: JoinWindows, key_serde: "Serde[Any] | None"
) -> StoreSpec:
    """Its values are of either side: the operation, which knows both serdes by the buffers, writes them."""
    return StoreSpec(
        name,
        StoreKind.KEY_VALUE,
        key_serde,
        None,
        timestamped=False,
        logged=said.logging is not False,
        changelog_config=_config(said.logging),
        window_size_ms=windows.size_ms,
        retention_ms=windows.size_ms + windows.grace_ms,
    )


def _config(logging: bool | Mapping[str, str]) -> Mapping[str, str]:
    return {} if isinstance(logging, bool) else logging
