"""FileStreamSink: each record's value is a line, in the words of Java's `String.valueOf`.

Exactly once: a small file beside it, `.<name>.<connector>.written`, tells how long the file was when a micro-batch
began and which offsets it began at. A batch that begins there again cuts the file back first, before any task writes:
all tasks add to one file. Whoever shortens, moves or replaces the file is let be: then there is nothing to cut.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect import spi
from ottla.connect.data.java_text import java_text
from ottla.connect.definitions import HIGH, STRING, ConfigDef, ConfigKey

_NULL: Final = b"null"
_SYNC_BYTES: Final = 8 << 20
"""After so many more the disk is asked to take them."""


class FileSinkConfig(spi.Config):
    file: str | None = None


class _Begun(msgspec.Struct, frozen=True):
    """A micro-batch."""

    length: int
    inode: int
    starts: dict[str, int]
    """By partition: where it began."""


class FileStreamSink(spi.Sink[FileSinkConfig]):
    CONFIG = ConfigDef(ConfigKey("file", STRING, None, HIGH, "The file to append to; without one, standard output."))
    """The definitions of Java's."""
    exactly_once = True
    takes_columns = True
    first_records = 100_000

    def __init__(self, config: FileSinkConfig, name: str) -> None:
        super().__init__(config, name)
        self._file: BinaryIO | None = None
        self._disk: _Disk | None = None
        """None for standard output."""

    def prepare(self, spans: Sequence[spi.Span]) -> None:
        if self.config.file is None:
            return
        path = Path(self.config.file)
        noted = path.with_name(f".{path.name}.{quote(self.name, safe='')[:100]}.written")
        starts = {f"{span.log}-{span.partition}": span.start for span in spans}
        with _appended(path) as file:
            found = os.fstat(file.fileno())
            before = _read(noted)
            if before is not None and before.starts.items() <= starts.items() and before.inode == found.st_ino:
                self.require_ours()
                os.ftruncate(file.fileno(), min(before.length, found.st_size))
            _note(noted, _Begun(os.fstat(file.fileno()).st_size, found.st_ino, starts))

    def begin(self, spans: Sequence[spi.Span]) -> None:
        if self.config.file is None:
            self._file = sys.stdout.buffer
            return
        # Anew each time, as Java's does not: a file that was rotated away is made again.
        self.close()
        self._file = _appended(Path(self.config.file))
        self._disk = _Disk(self._file)

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        for columns in batch.columns:
            values = columns.values
            if values.null_count:
                values = pc.fill_null(values, _NULL)
            lines = pc.binary_join_element_wise(values, b"", b"\n")
            self._add(_bytes_of(lines))
        if batch.records:
            text = "".join(f"{java_text(record.value)}\n" for record in batch.records)
            self._add(memoryview(text.encode(errors="surrogatepass")))
        return ()

    def _add(self, data: memoryview) -> None:
        assert self._file is not None, "begin comes first"
        self.require_ours()  # as late as can be: others add to the same file
        _write(self._file, data)
        if self._disk is not None:
            self._disk.wrote(len(data))

    def end(self) -> spi.Verdicts:
        assert self._file is not None, "begin comes first"
        if self._disk is not None:
            self._disk.sync()
        else:
            self._file.flush()
        return ()

    def close(self) -> None:
        if self._disk is not None:
            self._disk.close()
        self._file = self._disk = None


class _Disk:
    """The way of a file's bytes from memory to the disk, begun while more are fetched and made lines: else all of it
    would be waited for at the end of a batch."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._thread = ThreadPoolExecutor(1, "sync")
        self._asked: Future[None] | None = None
        self._unasked = 0

    def wrote(self, count: int) -> None:
        self._unasked += count
        if self._unasked >= _SYNC_BYTES and (self._asked is None or self._asked.done()):
            self._hear()
            self._asked, self._unasked = self._thread.submit(os.fdatasync, self._file.fileno()), 0

    def _hear(self) -> None:
        """The kernel tells an error once, to who asked first."""
        if self._asked is not None:
            self._asked.result()
            self._asked = None

    def sync(self) -> None:
        self._hear()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._thread.shutdown()
        self._file.close()


def _appended(path: Path) -> BinaryIO:
    try:
        return open(path, "ab", buffering=0)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise spi.ConnectorFailed(f"{path} cannot be opened: {error.strerror}") from error
    except OSError as error:
        raise spi.TryAgain(f"{path} cannot be opened: {error.strerror}") from error


def _write(file: BinaryIO, data: memoryview) -> None:
    """All of it: a raw file may take less. A disk that is full raises OSError, and the batch is cut back later."""
    while data:
        data = data[file.write(data) :]


def _bytes_of(lines: pa.Array) -> memoryview:
    """All values on end."""
    _, cuts, content = lines.buffers()
    if content is None:
        return memoryview(b"")
    first, last = np.frombuffer(cuts, np.int32, len(lines) + 1, lines.offset * 4)[[0, -1]]
    return memoryview(content)[first:last]


def _read(path: Path) -> _Begun | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Begun)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _note(path: Path, begun: _Begun) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_bytes(msgspec.json.encode(begun))
    os.replace(unfinished, path)
