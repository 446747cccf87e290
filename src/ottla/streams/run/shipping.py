"""How the functions of an application's file get to workers on machines that do not have the file."""

import sys
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle


def ship_by_value(module: ModuleType, *, with_neighbours: bool = False) -> None:
    """Lets Spark send the file's functions and classes whole: workers on other machines do not have the file, nor those
    beside it that it imports."""
    folder = Path(module.__file__ or "").parent
    neighbours = [each for each in list(sys.modules.values()) if with_neighbours and _lies_in(folder, each)]
    for each in {id(found): found for found in (module, *neighbours)}.values():
        cloudpickle.register_pickle_by_value(each)  # type: ignore[no-untyped-call]


def _lies_in(folder: Path, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and module.__name__ != "__main__" and Path(file).resolve().parent == folder.resolve()
