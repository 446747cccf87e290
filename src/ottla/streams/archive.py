"""An application as one archive, for machines that have Python and Spark but neither ottla nor the application.

    app/     the application's file, and what it imports from beside it
    site/    ottla, and what ottla needs but Spark itself
    run.py   what spark-submit starts

Spark unpacks an archive in the working directory of every executor, under the name that follows the `#`; from there
both folders are on the path of its Python processes. Compiled packages are those of this machine: the others have to
have the same kind of processor and the same minor version of Python.
"""

import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Final

import ottla

UNPACKED_AS: Final = "ottla-app"
APP: Final = "app"
SITE: Final = "site"
MAIN: Final = "run.py"
FILE_NAME: Final = "application.txt"
"""Of the application among the files in `app`: the archive says it, so that nobody else has to."""

NOT_CARRIED: Final = frozenset({"pyspark", "py4j", "pip", "setuptools"})
"""Spark brings its own."""
_OURS: Final = ("streams",)
_NAME: Final = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")

_RUN: Final = f'''"""Started by spark-submit, with --archives NAME.zip#{UNPACKED_AS}.

Takes what `ottla streams run` takes after the file.
"""

import atexit
import os
import sys
import tempfile
import zipfile
from urllib.parse import unquote, urlsplit

from pyspark import SparkConf, SparkContext

SparkContext._ensure_initialized()  # with the JVM that has started this: it knows what spark-submit was told
conf = SparkConf()


def unpacked():
    """Spark unpacks for executors, and for a driver that is in the cluster; beside one elsewhere there is the file."""
    if os.path.isdir("{UNPACKED_AS}"):
        return "{UNPACKED_AS}"
    named = [each for name in ("spark.archives", "spark.yarn.dist.archives") for each in conf.get(name, "").split(",")]
    for url in map(urlsplit, named):
        if url.fragment == "{UNPACKED_AS}" and url.scheme in ("", "file", "local"):
            folder = tempfile.TemporaryDirectory(prefix="{UNPACKED_AS}-")
            atexit.register(folder.cleanup)
            with zipfile.ZipFile(unquote(url.path)) as archive:
                archive.extractall(folder.name)
            return folder.name
    sys.exit("run.py: spark-submit has to be told --archives NAME.zip#{UNPACKED_AS}, with a file of this machine")


here = os.path.abspath(unpacked())
for part in ("{SITE}", "{APP}"):
    sys.path.insert(0, os.path.join(here, part))

from ottla.cli.app import run

with open(os.path.join(here, "{FILE_NAME}"), encoding="utf-8") as name:
    file = os.path.join(here, "{APP}", name.read())
# The driver starts Python, too: the first two are for that, where this is no executor's machine.
path = os.pathsep.join(os.path.join(root, part) for root in (here, "{UNPACKED_AS}") for part in ("{APP}", "{SITE}"))
there = f"spark.executorEnv.PYTHONPATH={{path}}"
sys.exit(run(["streams", "run", file, "--master", conf.get("spark.master"), "-X", there, *sys.argv[1:]]))
'''


class CannotArchive(Exception):
    """Something is not there. The text says what."""


def is_archive(path: str) -> bool:
    return zipfile.is_zipfile(path)


def write(
    target: Path, module: ModuleType, *, more_files: Sequence[Path] = (), more_packages: Sequence[str] = (), bare: bool
) -> None:
    """`module` is the application's file, loaded: what it has imported from its folder, or below, goes with it. `bare`:
    without what ottla needs. Raises CannotArchive."""
    assert module.__file__ is not None
    main = Path(module.__file__).resolve()
    packages = [] if bare else list(_needed([("ottla", _OURS), *((name, ()) for name in more_packages)]))
    partial = target.with_name(f"{target.name}.partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(MAIN, _RUN)
        archive.writestr(FILE_NAME, main.name)
        for path, inside in _application(main, more_files):
            archive.write(path, f"{APP}/{inside}")
        for path, inside in _package(Path(ottla.__path__[0])):
            archive.write(path, f"{SITE}/ottla/{inside}")
        for name in packages:
            for path, inside in _installed(name):
                archive.write(path, f"{SITE}/{inside}")
    os.replace(partial, target)


def unpacked_application(path: str) -> str:
    """The application's file out of an archive, with its neighbours, in a folder that lasts as long as this process.
    Raises CannotArchive for a zip file of another kind."""
    with zipfile.ZipFile(path) as archive:
        if FILE_NAME not in archive.namelist():
            raise CannotArchive(f"{path} was not made by `ottla streams package`")
        return str(Path(_unpacked(archive, APP), archive.read(FILE_NAME).decode()))


def lend_packages(path: str) -> None:
    """To Python processes of the driver: Spark starts them by the Python of the executors, which may have none."""
    with zipfile.ZipFile(path) as archive:
        packages = _unpacked(archive, SITE)
    known = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{known}{os.pathsep}{packages}" if known else packages


def _unpacked(archive: zipfile.ZipFile, part: str) -> str:
    into = _until_exit()
    archive.extractall(into, [name for name in archive.namelist() if name.startswith(f"{part}/")])
    return str(Path(into, part))


def settings(path: str) -> dict[str, str]:
    """Of Spark: every executor gets the archive, and looks into it."""
    path_there = os.pathsep.join(f"{UNPACKED_AS}/{part}" for part in (APP, SITE))
    return {
        "spark.archives": f"{Path(path).resolve()}#{UNPACKED_AS}",
        "spark.executorEnv.PYTHONPATH": path_there,
    }


def _until_exit() -> str:
    import atexit  # noqa: PLC0415

    folder = tempfile.TemporaryDirectory(prefix="ottla-app-")
    atexit.register(folder.cleanup)
    return folder.name


def _application(main: Path, more: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    home = main.parent
    found = {main: main.name}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and (path := Path(file).resolve()).is_relative_to(home):
            inside = path.relative_to(home)
            # An environment in the folder, and ottla's own sources, are not the application's.
            if not _is_installed(inside) and module.__name__.partition(".")[0] != "ottla":
                found[path] = str(inside)
    for path in more:
        if not path.exists():
            raise CannotArchive(f"{path}: there is no such file or folder")
        for each, inside_it in _package(path) if path.is_dir() else [(path, "")]:
            found[each.resolve()] = str(PurePosixPath(path.name, inside_it))
    return iter(sorted(found.items()))


def _is_installed(inside: Path) -> bool:
    return "site-packages" in inside.parts or any(part.startswith(".") for part in inside.parts)


def _package(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path, path.relative_to(folder).as_posix()


def _needed(roots: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Distributions, each once, ottla itself left out: it is copied from where it runs."""
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name, extras = waiting.pop(0)
        if (plain := name.lower().replace("_", "-")) in seen or plain in NOT_CARRIED:
            continue
        seen.add(plain)
        try:
            wanted = distribution(name).requires or ()
        except PackageNotFoundError as error:
            if (name, extras) in roots:
                raise CannotArchive(f"{name} is not installed here") from error
            continue  # for another platform or another Python
        if plain != "ottla":
            yield name
        for line in wanted:
            named, extra = _NAME.match(line), _EXTRA.search(line)
            if named is not None and (extra is None or extra[1] in extras):
                waiting.append((named[1], ()))


def _installed(name: str) -> Iterator[tuple[Path, str]]:
    for file in distribution(name).files or ():
        path = Path(str(file.locate()))
        if ".." not in file.parts and file.suffix != ".pyc" and path.is_file():
            yield path, file.as_posix()
