"""What can be plugged into a worker: one row each, named as Kafka names it, its code loaded when it is first asked for.

Each room of plug-ins (`connectors`, `converters`, `header_converters`, `transforms`, `predicates`) has its rows in a
tuple `PLUGINS` of its `__init__`, which imports nothing heavy; `catalogue` puts them together with those that other
distributions bring by the entry point group `ottla.connectors`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Protocol

from ottla.connect.definitions import ConfigDef
from ottla.model.properties.property import closest

KAFKA_VERSION = "4.3.1"
"""What our connectors, converters and transforms answer as their version: they do what Kafka's of this version do."""


class PluginType(Enum):
    """In the words of GET /connector-plugins."""

    SOURCE = "source"
    SINK = "sink"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"

    @property
    def is_connector(self) -> bool:
        return self in (PluginType.SOURCE, PluginType.SINK)


class PluginClass(Protocol):
    """What the loaded object of every plug-in has; what more is asked of it, its room says."""

    CONFIG: ConfigDef


@dataclass(frozen=True, slots=True)
class Plugin:
    """`class_name` is what configurations say and answers show; `location` is `module:attribute` in Python."""

    class_name: str
    kind: PluginType
    location: str
    other_names: tuple[str, ...] = ()
    """Class names of others for the same thing, such as Confluent's and Aiven's."""
    version: str = KAFKA_VERSION
    splits: bool = False
    """Whether a source has `tasks.max` tasks; a sink always has. Else it has one, whatever is asked for."""

    @property
    def simple_name(self) -> str:
        """The class name without its package; a nested class keeps the name of the outer one: `Cast$Value`."""
        return self.class_name.rpartition(".")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """All that mean it: whole, simple, and without what every class of its kind ends in (FileStreamSink)."""
        whole = (self.class_name, *self.other_names)
        simple = [name.rpartition(".")[2] for name in whole]
        pruned = [_pruned(name, self.kind) for name in simple]
        return tuple(dict.fromkeys((*whole, *simple, *pruned)))

    def load(self) -> type[PluginClass]:
        """The class itself. Raises ImportError or AttributeError when it cannot be had, as for a missing extra."""
        module, _, attribute = self.location.partition(":")
        loaded: type[PluginClass] = getattr(import_module(module), attribute)
        return loaded


_SUFFIXES = {
    PluginType.SOURCE: ("Connector",),
    PluginType.SINK: ("Connector",),
    PluginType.CONVERTER: ("Converter",),
    PluginType.HEADER_CONVERTER: ("HeaderConverter", "Converter"),
    PluginType.TRANSFORMATION: ("Transformation",),
    PluginType.PREDICATE: ("Predicate",),
}


def _pruned(simple_name: str, kind: PluginType) -> str:
    for suffix in _SUFFIXES[kind]:
        if simple_name.endswith(suffix) and simple_name != suffix:
            return simple_name.removesuffix(suffix)
    return simple_name


class UnknownPlugin(ValueError):
    """No row has this name; the text says which one is nearest."""


class Catalogue:
    """Rows by every name they go by. A later row never takes a name from an earlier one."""

    __slots__ = ("_by_name", "rows")

    def __init__(self, rows: Iterable[Plugin]) -> None:
        self.rows = tuple(sorted(rows, key=lambda row: (row.kind.value, row.class_name)))
        self._by_name: dict[tuple[bool, str], list[Plugin]] = {}
        for row in self.rows:
            for name in row.names:
                self._by_name.setdefault((row.kind.is_connector, name), []).append(row)

    def find(self, name: str, *kinds: PluginType) -> Plugin | None:
        """The row of that name among these kinds; without kinds, among connectors first."""
        rows = [*self._by_name.get((True, name), ()), *self._by_name.get((False, name), ())]
        return next((row for row in rows if not kinds or row.kind in kinds), None)

    def of(self, *kinds: PluginType) -> list[Plugin]:
        return [row for row in self.rows if row.kind in kinds]

    def nearest(self, name: str, *kinds: PluginType) -> str | None:
        """The name that was probably meant."""
        names = [each for row in self.rows if not kinds or row.kind in kinds for each in row.names]
        return closest(name, names)
