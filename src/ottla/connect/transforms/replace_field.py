"""ReplaceField: some of the fields, some of them under other names."""

from collections.abc import Sequence
from typing import Any, Final

from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.definitions import LIST, MEDIUM, ConfigDef, ConfigError, ConfigKey, SomeOf, Texts, Value
from ottla.connect.transforms.base import REPLACE_NULL, PartTransform, Remembered, basics, field_values, row_of
from ottla.connect.transforms.fields import require_map, require_struct

_PURPOSE: Final = "field replacement"


def parse_renames(mappings: Sequence[str]) -> dict[str, str]:
    """Raises ConfigError."""
    renames = {}
    for mapping in mappings:
        parts = mapping.split(":")
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise ConfigError.of("renames", f"[{', '.join(mappings)}]", f"Invalid rename mapping: {mapping}")
        renames[parts[0]] = parts[1]
    return renames


def _valid_renames(name: str, value: Value) -> None:
    assert isinstance(value, tuple)
    parse_renames(value)


class ReplaceField(PartTransform):
    CONFIG = ConfigDef(
        ConfigKey("exclude", LIST, (), MEDIUM, "Fields to leave out. It counts before include.", SomeOf()),
        ConfigKey("include", LIST, (), MEDIUM, "Fields to keep: if there are any, no others.", SomeOf()),
        ConfigKey("renames", LIST, (), MEDIUM, "New names of fields: old:new,other:newer.", _valid_renames),
        REPLACE_NULL,
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._exclude = frozenset(self.config.get_list("exclude"))
        self._include = frozenset(self.config.get_list("include"))
        self._renames = parse_renames(self.config.get_list("renames"))
        self._originals = {new: old for old, new in self._renames.items()}
        self._replace_null = self.config.get_bool(REPLACE_NULL.name)
        self._plan = Remembered(self._planned)

    def _kept(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> tuple[Schema | None, Any] | None:
        if value is None:
            return None
        if schema is None:
            found = require_map(value, _PURPOSE)
            renames = self._renames
            return None, {renames.get(name, name): each for name, each in found.items() if self._kept(name)}
        row = require_struct(value, _PURPOSE)
        updated, places = self._plan(row.schema)
        values = field_values(row, self._replace_null)
        return updated, row_of(updated, [values[place] for place in places])

    def _planned(self, schema: Schema) -> tuple[Schema, list[int]]:
        fields = [
            (self._renames.get(field.name, field.name), field.schema)
            for field in schema.fields
            if self._kept(field.name)
        ]
        updated = struct_schema(fields, **basics(schema))
        blank = Struct(schema)
        return updated, [blank.found(self._originals.get(name, name)).index for name, _ in fields]


class ReplaceFieldKey(ReplaceField):
    part = "key"


class ReplaceFieldValue(ReplaceField):
    part = "value"
