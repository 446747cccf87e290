"""What a row is known by: columns of the record's key, or of its value."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ottla.connect.connectors.tables.names import Misfit
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.struct import Struct

PkMode = Literal["none", "record_key", "record_value"]


def key_of(record: ConnectRecord, mode: PkMode, fields: Sequence[str]) -> dict[str, Any]:
    """Raises Misfit for a record that has no such key."""
    held = record.key if mode == "record_key" else record.value
    if held is None:
        raise Misfit(f"it has no {'key' if mode == 'record_key' else 'value'}, which pk.mode={mode} asks for")
    if isinstance(held, Struct):
        held = {field.name: held.get(field.name) for field in held.schema.fields}
    if not isinstance(held, dict):
        if len(fields) != 1:
            raise Misfit(f"its key is one value, and pk.fields names {len(fields)} columns for it")
        held = {fields[0]: held}
    wanted = list(fields) or sorted(held)
    missing = [name for name in wanted if held.get(name) is None]
    if missing:
        raise Misfit(f"its key has no {', '.join(missing)}, which pk.fields asks for")
    nested = [name for name in wanted if isinstance(held[name], Struct | dict | list | tuple)]
    if nested:
        raise Misfit(f"its key's {', '.join(nested)} is no single value, which a column of a key has to be")
    return {name: held[name] for name in wanted}


class Latest:
    """Of each key what came last, as long as nobody says that it is no good."""

    __slots__ = ("_by_key", "_places")

    def __init__(self, keys: Sequence[Mapping[str, Any]]) -> None:
        self._by_key: dict[tuple[Any, ...], list[int]] = {}
        self._places = [tuple(key.values()) for key in keys]
        for at, key in enumerate(self._places):
            self._by_key.setdefault(key, []).append(at)

    def places(self) -> list[int]:
        """In their order."""
        return sorted(places[-1] for places in self._by_key.values() if places)

    def before(self, at: int) -> int | None:
        """It counts no more, but the one before it, if there is one."""
        places = self._by_key[self._places[at]]
        assert places.pop() == at, "only what is last is looked at"
        return places[-1] if places else None
