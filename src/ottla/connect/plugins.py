"""What can be plugged into a worker: one row each, named as Kafka names it, its code loaded when it is first asked for.
A class that has no row is named by where it is, `module:Class`, if the module is one of those that may be asked for:
to import a module is to run it.

Each room of plug-ins (`connectors`, `converters`, `header_converters`, `transforms`, `predicates`) has its rows in a
tuple `PLUGINS` of its `__init__`, which imports nothing heavy; `catalogue` puts them together with those that other
distributions bring by the entry point group `ottla.connectors`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any, Final, Protocol

from ottla.connect.definitions import ConfigDef
from ottla.model.extras import missing
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
        loaded: type[PluginClass] = loaded_from(self.location)
        return loaded


def loaded_from(location: str) -> Any:
    """Of `module:attribute`. Raises ImportError, AttributeError."""
    module, _, attribute = location.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        raise
    except (Exception, SystemExit) as error:  # somebody else's module may raise anything, and end programs
        raise ImportError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error


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


_LOCATION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def _nowhere(module: str) -> bool:
    return False


class Catalogue:
    """Rows by every name they go by. A later row never takes a name from an earlier one."""

    __slots__ = ("_by_name", "_may_import", "rows")

    def __init__(self, rows: Iterable[Plugin], may_import: Callable[[str], bool] = _nowhere) -> None:
        """`may_import`: whether `module:Class` may be asked for."""
        self._may_import = may_import
        self.rows = tuple(sorted(rows, key=lambda row: (row.kind.value, row.class_name)))
        self._by_name: dict[tuple[bool, str], list[Plugin]] = {}
        for row in self.rows:
            for name in row.names:
                self._by_name.setdefault((row.kind.is_connector, name), []).append(row)

    def find(self, name: str, *kinds: PluginType) -> Plugin | None:
        """The row of that name among these kinds; without kinds, among connectors first."""
        rows = [*self._by_name.get((True, name), ()), *self._by_name.get((False, name), ())]
        found = next((row for row in rows if not kinds or row.kind in kinds), None)
        return self._at(name, kinds) if found is None and _LOCATION.fullmatch(name) else found

    def _at(self, location: str, kinds: tuple[PluginType, ...]) -> Plugin | None:
        rows = (row for row in self.rows if row.location == location)
        found = next((row for row in rows if not kinds or row.kind in kinds), None)
        if found is not None or not self._may_import(location.partition(":")[0]):
            return found
        try:
            kind = getattr(loaded_from(location), "PLUGIN_TYPE", None)
        except (ImportError, AttributeError):
            return None
        if not isinstance(kind, PluginType):
            return None
        if kind is PluginType.CONVERTER and PluginType.HEADER_CONVERTER in kinds:
            kind = PluginType.HEADER_CONVERTER  # a converter does headers, too
        return Plugin(location, kind, location, version="undefined") if not kinds or kind in kinds else None

    def of(self, *kinds: PluginType) -> list[Plugin]:
        return [row for row in self.rows if row.kind in kinds]

    def why_not(self, name: str, *kinds: PluginType) -> str:
        """Behind the sentence that there is none of this name: what is in its way, or which was probably meant."""
        if _LOCATION.fullmatch(name):
            return f" {self._why_not_at(name, kinds)}"
        near = self.nearest(name, *kinds)
        return f" Did you mean {near}?" if near else ""

    def _why_not_at(self, location: str, kinds: tuple[PluginType, ...]) -> str:
        module = location.partition(":")[0]
        if not self._may_import(module):
            return (
                f"The module {module} is none that configs may name: connect.plugin.modules of the worker has to name "
                "it, or a distribution by the entry point group ottla.connectors."
            )
        try:
            loaded_from(location)
        except ImportError as error:
            return f"It cannot be loaded: {missing(error)}."
        except AttributeError as error:
            return f"It cannot be loaded: {error}."
        return f"It is no {' or '.join(kind.value.replace('_', ' ') for kind in kinds)}."

    def nearest(self, name: str, *kinds: PluginType) -> str | None:
        """The name that was probably meant."""
        names = [each for row in self.rows if not kinds or row.kind in kinds for each in row.names]
        return closest(name, names)
