"""Every plug-in a worker knows: the rows of our own rooms, and those of distributions that name themselves.

An entry point of the group `ottla.connectors` is either a plug-in class, whose entry point name is its short name, or a
tuple `PLUGINS` of rows. One that cannot be loaded costs itself alone: it is left out and said. Configs may also name
classes by `module:Class`, where the module belongs to such a distribution or is one that the worker's settings name.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath
from typing import Final

from ottla.connect.plugins import Catalogue, Plugin, PluginType

ENTRY_POINTS = "ottla.connectors"
ANY_MODULE: Final = ("*",)
"""For who runs a connector by himself, as he could run its module."""

_ROOMS = ("connectors", "converters", "header_converters", "transforms", "predicates")


@cache
def catalogue(modules: tuple[str, ...] = ()) -> Catalogue:
    """`modules`: those whose classes configs may name as `module:Class`, with all that is in them if they are packages;
    besides those of distributions that bring plug-ins."""

    def may_import(module: str) -> bool:
        if "*" in modules or any(module == each or module.startswith(f"{each}.") for each in modules):
            return True
        return module in _brought()

    return Catalogue([*own_rows(), *foreign_rows()[0]], may_import)


@cache
def _brought() -> frozenset[str]:
    """Modules of distributions that name themselves."""
    found: set[str] = set()
    for entry in entry_points(group=ENTRY_POINTS):
        found.add(entry.module)
        files = (entry.dist.files if entry.dist is not None else None) or ()
        found.update(_module_of(file) for file in files if file.suffix == ".py")
    return frozenset(found)


def _module_of(file: PurePath) -> str:
    path = file.with_suffix("")
    return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)


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
        except (Exception, SystemExit) as error:  # noqa: BLE001  somebody else's module may raise anything at all
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
