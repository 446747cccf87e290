"""Every plug-in a worker knows: the rows of our own rooms, and those of distributions that name themselves.

An entry point of the group `ottla.connectors` is either a plug-in class, whose entry point name is its short name, or a
tuple `PLUGINS` of rows. One that cannot be loaded costs itself alone: it is left out and said.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from ottla.connect.plugins import Catalogue, Plugin, PluginType

ENTRY_POINTS = "ottla.connectors"

_ROOMS = ("connectors", "converters", "header_converters", "transforms", "predicates")


@cache
def catalogue() -> Catalogue:
    return Catalogue([*own_rows(), *foreign_rows()[0]])


def connector_named(name: str, plugins: Catalogue) -> Plugin | None:
    """A connector by any of its names, or by `module:Class`, where the class is in the worker's own environment."""
    if ":" not in name:
        return plugins.find(name, PluginType.SOURCE, PluginType.SINK)
    module, _, attribute = name.partition(":")
    try:
        kind = getattr(getattr(import_module(module), attribute), "PLUGIN_TYPE", None)
    except Exception:  # noqa: BLE001  somebody else's module may raise anything at all
        return None
    if not isinstance(kind, PluginType) or not kind.is_connector:
        return None
    return Plugin(name, kind, name, version="undefined")


def own_rows() -> list[Plugin]:
    rows: list[Plugin] = []
    for room in _ROOMS:
        rows += import_module(f"ottla.connect.{room}").PLUGINS
    return rows


def foreign_rows() -> tuple[list[Plugin], list[str]]:
    """Rows by entry points, and a line about each that could not be taken."""
    rows: list[Plugin] = []
    problems: list[str] = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            rows += _rows_of(entry)
        except Exception as error:  # noqa: BLE001  somebody else's module may raise anything at all
            problems.append(f"the entry point {entry.name} of {entry.value} cannot be loaded: {error}")
    return rows, problems


def _rows_of(entry: EntryPoint) -> list[Plugin]:
    loaded = entry.load()
    if isinstance(loaded, tuple) and all(isinstance(row, Plugin) for row in loaded):
        return list(loaded)
    kind = getattr(loaded, "PLUGIN_TYPE", None)
    if not isinstance(kind, PluginType):
        raise TypeError("it is neither a plug-in class, which has a PLUGIN_TYPE, nor a tuple of rows")
    version = entry.dist.version if entry.dist is not None else "undefined"
    class_name = f"{loaded.__module__}.{loaded.__qualname__}"
    return [Plugin(class_name, kind, entry.value.replace(" ", ""), (entry.name,), version)]
