"""Where files lie. One that is put appears whole or not at all: under its name only once all of it is written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from ottla.connect import spi
from ottla.connect.connectors.files.config import StoreConfig

_UNFINISHED: Final = ".part"


class Listed(NamedTuple):
    """A file as its store tells of it."""

    path: str
    """From the root of the store, with slashes."""
    size: int
    written_ms: int


def _at_once() -> None:
    """Nobody is asked."""


class Store(Protocol):
    """Raises TryAgain where it cannot be reached."""

    shows_halves: bool
    """Whether a file can be seen that somebody is still writing."""

    def put(self, path: str, data: bytes, allowed: Callable[[], None] = ...) -> None:
        """`allowed` is called as late as can be before the file is seen; it is not, if that raises."""

    def delete(self, path: str) -> None:
        """It may have gone already."""

    def notes(self, folder: str) -> list[str]:
        """Paths of the hidden files of one folder."""

    def files(self, under: str) -> list[Listed]:
        """All in a folder and its folders, but hidden ones; none if it is not there."""

    def get(self, path: str, most: int) -> bytes | None:
        """At most so many bytes of its beginning; None: it is not there."""


class Folder:
    __slots__ = ("_root",)
    shows_halves = True

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def put(self, path: str, data: bytes, allowed: Callable[[], None] = _at_once) -> None:
        target = self._root / path
        beside = target.with_name(f".{target.name}{_UNFINISHED}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            allowed()
            beside.replace(target)
        except OSError as error:
            raise spi.TryAgain(f"{target} cannot be written: {error.strerror or error}") from error

    def delete(self, path: str) -> None:
        try:
            (self._root / path).unlink(missing_ok=True)
        except OSError as error:
            raise spi.TryAgain(f"{self._root / path} cannot be deleted: {error.strerror or error}") from error

    def notes(self, folder: str) -> list[str]:
        try:
            found = sorted(os.listdir(self._root / folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise spi.TryAgain(f"{self._root / folder} cannot be listed: {error.strerror or error}") from error
        return [f"{folder}/{name}" for name in found if name.startswith(".") and not name.endswith(_UNFINISHED)]

    def files(self, under: str) -> list[Listed]:
        found: list[Listed] = []
        for folder, folders, names in os.walk(self._root / under, onerror=_unlisted):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in (Path(folder, name) for name in names if not name.startswith(".")):
                try:
                    stat = path.stat()
                except FileNotFoundError:
                    continue  # it vanished just now
                told = path.relative_to(self._root).as_posix()
                found.append(Listed(told, stat.st_size, stat.st_mtime_ns // 1_000_000))
        return found

    def get(self, path: str, most: int) -> bytes | None:
        try:
            with (self._root / path).open("rb") as file:
                return file.read(most)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise spi.TryAgain(f"{self._root / path} cannot be read: {error.strerror or error}") from error


def _unlisted(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise spi.TryAgain(f"{error.filename} cannot be listed: {error.strerror or error}") from error


class Bucket:
    """By Arrow's own S3: a file is there once it is closed."""

    __slots__ = ("_files", "_name")
    shows_halves = False

    def __init__(self, config: StoreConfig) -> None:
        from pyarrow import fs  # noqa: PLC0415  some tens of megabytes, for those who use it

        url = urlsplit(config.store_url)
        more = {"endpoint_override": url.netloc, "scheme": url.scheme} if config.store_url else {}
        self._name = config.s3_bucket_name
        self._files = fs.S3FileSystem(
            access_key=config.aws_access_key_id or None,
            secret_key=config.aws_secret_access_key or None,
            region=config.s3_region,
            **more,
        )

    def put(self, path: str, data: bytes, allowed: Callable[[], None] = _at_once) -> None:
        allowed()
        try:
            # Else Arrow would pack what is named .gz, which is packed already.
            with self._files.open_output_stream(f"{self._name}/{path}", compression=None) as stream:
                stream.write(data)
        except OSError as error:
            raise spi.TryAgain(f"s3://{self._name}/{path} cannot be written: {error}") from error

    def delete(self, path: str) -> None:
        try:
            self._files.delete_file(f"{self._name}/{path}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise spi.TryAgain(f"s3://{self._name}/{path} cannot be deleted: {error}") from error

    def notes(self, folder: str) -> list[str]:
        found = self._listed(folder, recursive=False)
        return sorted(self._path(each) for each in found if each.base_name.startswith("."))

    def files(self, under: str) -> list[Listed]:
        return [
            Listed(self._path(each), each.size, (each.mtime_ns or 0) // 1_000_000)
            for each in self._listed(under, recursive=True)
            if not each.base_name.startswith(".")
        ]

    def _path(self, found: Any) -> str:
        return str(found.path).removeprefix(f"{self._name}/")

    def _listed(self, under: str, *, recursive: bool) -> list[Any]:
        from pyarrow import fs  # noqa: PLC0415

        folder = f"{self._name}/{under}".rstrip("/")
        try:
            found = self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=recursive))
        except OSError as error:
            raise spi.TryAgain(f"s3://{folder} cannot be listed: {error}") from error
        return [each for each in found if each.is_file]

    def get(self, path: str, most: int) -> bytes | None:
        try:
            # Else it would unpack by the name's end, and without a limit.
            with self._files.open_input_stream(f"{self._name}/{path}", compression=None) as stream:
                data: bytes = stream.read(most)
                return data
        except FileNotFoundError:
            return None
        except OSError as error:
            raise spi.TryAgain(f"s3://{self._name}/{path} cannot be read: {error}") from error


def store_of(config: StoreConfig) -> Store:
    """Raises ConfigRefused."""
    if bool(config.directory) == bool(config.s3_bucket_name):
        raise spi.ConfigRefused("s3.bucket.name", "give it, or directory: where the files lie")
    return Folder(config.directory) if config.directory else Bucket(config)
