"""Rows of a source as records."""

from typing import Any, NamedTuple

from ottla.registry.lookup import Registry
from ottla.serdes.base import SerdeError, Where, placed
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.formats import FORMATS
from ottla.sql.model import DataSource
from ottla.sql.records import Formats


class Encoded(NamedTuple):
    key: bytes | None
    value: bytes | None


class Writer:
    """Of one source, made once for many rows."""

    def __init__(self, target: DataSource, registry: Registry | None) -> None:
        formats = Formats(registry)
        self.target = target
        self._asks = asks_registry(target)
        self._key = placed(formats.key(target), Where(target.topic))
        self._value = placed(formats.value(target), Where(target.topic))

    @property
    def may_block(self) -> bool:
        """Whether the next row may have to wait for the registry: until one was written with a key."""
        return self._asks

    def encoded(self, key: Any, value: Any) -> Encoded:
        """Raises SqlError."""
        try:
            made = Encoded(self._key.serialize(key), self._value.serialize(value))
        except SerdeError as error:
            name = self.target.value_format.name
            raise SqlError(BAD_STATEMENT, f"the row cannot be written as {name}: {error}") from None
        if key is not None:
            self._asks = False
        return made


def asks_registry(*sources: DataSource) -> bool:
    """Whether a serde of theirs may ask the registry, which takes its time and may be served by this very loop."""
    return any(FORMATS[each.name].needs_registry for it in sources for each in (it.key_format, it.value_format))
