"""Arrow without pandas, until somebody asks for pandas.

Arrow imports it for its first array of a list, to find out whether that is a series: 28 MB and a tenth of a second, for
nothing where nobody has one. Told that it is not installed, Arrow goes on without; once somebody does import it, Arrow
is shown that it is there, before the importer goes on. Its series are known from then on, but pandas' own words for
nothing in lists (`NaT`, `NA`) are not: Arrow looks for those once. So this is for a process whose work is ours, and
not for one that runs functions of users.
"""

import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

PANDAS: Final = "pandas"


def leave_pandas_out() -> None:
    """Does nothing in a process that has pandas."""
    import pyarrow  # noqa: PLC0415  who never gets here has no need of it

    shim: Any = pyarrow.lib._pandas_api
    if PANDAS in sys.modules or any(isinstance(each, _Watch) for each in sys.meta_path):
        return
    watch = _Watch(threading.get_ident())
    sys.meta_path.insert(0, watch)
    assert not shim.have_pandas
    pyarrow.array([None])  # what of Arrow is C++ asks as well
    import_module("pyspark.testing.utils")  # which PySpark asks whether there is numpy, at its first call of Java
    watch.refused = None


class _Watch(MetaPathFinder):
    """Finds nothing itself: the first import of pandas passes by here."""

    def __init__(self, refused: int) -> None:
        self.refused: int | None = refused
        """The thread to which pandas is not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != PANDAS:
            return None
        if self.refused == threading.get_ident():
            raise ModuleNotFoundError(name, name=name)
        sys.meta_path.remove(self)
        try:
            spec = find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loading(spec.loader)
        return spec


class _Loading(Loader):
    def __init__(self, real: Any) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._real.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        import pyarrow  # noqa: PLC0415

        self._real.exec_module(module)
        shown: Any = pyarrow.lib._pandas_api.pd
        assert shown is module
