"""Libraries that an installation may lack: a node alone needs few, services and pipelines bring the others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_BROUGHT_BY: Final = {
    "registry": ("fastavro", "google", "jsonschema_rs"),
    "streams": ("numpy", "pandas", "pyarrow", "pyspark"),
    "connect": (
        "adbc_driver_manager",
        "adbc_driver_postgresql",
        "adbc_driver_sqlite",
        "connectorx",
        "deltalake",
        "psycopg",
        "pyiceberg",
        "pymysql",
    ),
    "sql": ("h2", "wsproto", "yaml"),
    "security": ("cryptography", "jwt"),
}
"""Packages by the extra of pyproject.toml that has them, the first one if several do."""
_EXTRA_OF: Final = {package: extra for extra, packages in _BROUGHT_BY.items() for package in packages}
_CALLED: Final = {"google": "protobuf", "jwt": "PyJWT"}
"""What is installed, where that has another name than what is imported."""
_BY_MAKE: Final = {"streams": "make streams", "connect": "make streams"}


def missing(error: ImportError) -> str:
    """What is missing, and how it is had."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return str(error)
    package = error.name.partition(".")[0]
    extra = _EXTRA_OF.get(package)
    if extra is None:
        return str(error)
    make = _BY_MAKE.get(extra, "make setup")
    return (
        f"{_CALLED.get(package, package)} is not installed: pip install 'ottla[{extra}]' (in a clone of ottla: {make})"
    )


@contextmanager
def named() -> Iterator[None]:
    """What cannot be imported in here is told by `missing`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing(error), name=error.name) from error
