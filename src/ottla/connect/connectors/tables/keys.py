"""What a row is known by: columns of the record's key, or of its value."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ottla.connect.connectors.tables.rows import Misfit
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
    return {name: held[name] for name in wanted}


def last_of_each(keys: Sequence[Mapping[str, Any]]) -> list[int]:
    """Places of those that no later one replaces, in their order."""
    last = {tuple(key.values()): at for at, key in enumerate(keys)}
    return sorted(last.values())
