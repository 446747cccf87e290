"""Records of a source: how their keys and values are read and written, and which time they have.

Apart from `compile`: a server reads and writes rows before it has a topology, and all that makes one takes long to
import.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.serdes.base import Serde
from ottla.serdes.types import LONG, STRING, TIMESTAMP
from ottla.sql.formats import serde as format_serde
from ottla.sql.functions import SCALARS
from ottla.sql.functions.declare import Argument, literal
from ottla.sql.model import DataSource, EventTime, WindowedKey
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression
from ottla.streams.serdes import Serdes

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry


@dataclass(frozen=True, slots=True)
class Formats:
    """Serdes of sources, with the registry that some need."""

    registry: "Registry | None" = None

    def key(self, source: DataSource) -> Serde[Any]:
        return windowed_serde(format_serde(source.key_format, source.keys, "key", self.registry), source.window)

    def value(self, source: DataSource) -> Serde[Any]:
        return format_serde(source.value_format, source.values, "value", self.registry)


def windowed_serde(inner: Serde[Any], window: WindowedKey | None) -> Serde[Any]:
    if window is None:
        return inner
    if window.size_ms is None:
        return Serdes.session_windowed(inner)
    return Serdes.time_windowed(inner, window.size_ms)


def event_column(source: DataSource, at: EventTime) -> Argument:
    kind = source.column(at.column)
    assert kind is not None
    if at.column not in dict(source.keys):
        return Argument(e.value[at.column], kind)
    own = e.key["key"] if source.window else e.key
    return Argument(own if len(source.keys) == 1 else own[at.column], kind)


def event_ms(given: Argument, at: EventTime) -> Expression:
    """Milliseconds since 1970."""
    if given.type == LONG:
        return given.expression
    if given.type == STRING:
        assert at.format is not None
        return SCALARS["STRINGTOTIMESTAMP"].make([given, literal(at.format, STRING)])
    assert given.type == TIMESTAMP
    return SCALARS["UNIX_TIMESTAMP"].make([given])
