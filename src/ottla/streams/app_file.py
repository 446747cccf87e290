"""An application out of a Python file: the `app` that the file defines at its top level."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from ottla.streams import archive
from ottla.streams.app import StreamsApp
from ottla.streams.own_lines import own_lines, place_of

NAME: Final = "app"
_MODULE: Final = "ottla_app_{stem}"


class AppFileError(Exception):
    """The file cannot be used; the text says where and why."""


def load(path: str) -> tuple[StreamsApp, ModuleType]:
    """Runs the file, or the one in an archive. What lies beside it can be imported by it, here and in Spark's
    workers."""
    file = Path(path)
    if not file.is_file():
        raise AppFileError(f"{path}: there is no such file")
    if archive.is_archive(path):
        try:
            file = Path(archive.unpacked_application(path))
        except archive.CannotArchive as error:
            raise AppFileError(str(error)) from error
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # Workers are started by a JVM that gets this environment.
    known = os.environ.get("PYTHONPATH", "")
    if folder not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{known}" if known else folder
    module = _run(file)
    app = getattr(module, NAME, None)
    if app is None:
        raise AppFileError(
            f"{path} defines no `{NAME}`: a line such as `{NAME} = StreamsApp('word-count', builder.build())` is "
            "expected"
        )
    if not isinstance(app, StreamsApp):
        raise AppFileError(f"`{NAME}` in {path} is a {type(app).__name__}, not a StreamsApp")
    return app, module


def _run(file: Path) -> ModuleType:
    # Not the file's own name: `json.py` must not stand in for json.
    name = _MODULE.format(stem=file.stem.replace("-", "_").replace(".", "_"))
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise AppFileError(f"{file}: a Python file is expected, with a name that ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        where = place_of(error) or str(file)
        raise AppFileError(f"{where}: {type(error).__name__}: {error}{own_lines(error)}") from error
    return module
