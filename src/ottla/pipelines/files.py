"""Files of checkpoints and beside them: in a folder, or in any file system that Spark knows (Hadoop's), by its URL.

Who comes with a URL needs a session.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlparse


def read_text(path: str) -> str:
    """Raises FileNotFoundError."""
    local = _local(path)
    if local is not None:
        return local.read_text(encoding="utf-8")
    where, files = _hadoop(path)
    if not files.exists(where):
        raise FileNotFoundError(path)
    stream = files.open(where)
    try:
        return str(_jvm().org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def kept_text(path: str) -> str | None:
    """None if it is not there."""
    try:
        return read_text(path)
    except FileNotFoundError:
        return None


def keep_text(path: str, text: str) -> None:
    """In whole or not at all; by a URL a crash in the midst of it may leave what cannot be read, not what is wrong."""
    local = _local(path)
    if local is not None:
        local.parent.mkdir(parents=True, exist_ok=True)
        draft = local.with_name(f"{local.name}.draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(local)
        return
    where, files = _hadoop(path)
    stream = files.create(where, True)
    try:
        stream.write(text.encode())
    finally:
        stream.close()


def names_in(folder: str) -> list[str]:
    """Nothing where there is no such folder."""
    local = _local(folder)
    if local is not None:
        return os.listdir(local) if local.is_dir() else []
    where, files = _hadoop(folder)
    return [str(each.getPath().getName()) for each in files.listStatus(where)] if files.exists(where) else []


def delete(path: str) -> None:
    """With all that is below it, if it is there. Raises OSError."""
    local = _local(path)
    if local is None:
        _delete_by_hadoop(path)
    elif local.is_dir() and not local.is_symlink():
        shutil.rmtree(local)
    else:
        local.unlink(missing_ok=True)


def move(path: str, to: str) -> None:
    """In place of what is there."""
    delete(to)
    local = _local(path)
    if local is None:
        where, files = _hadoop(path)
        if not files.rename(where, _hadoop(to)[0]):
            raise OSError(f"{path} cannot be renamed to {to}")
    else:
        os.rename(local, _local(to) or to)


def _delete_by_hadoop(path: str) -> None:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415

    try:
        where, files = _hadoop(path)
        files.delete(where, True)
    except Py4JJavaError as error:
        raise OSError(str(error.java_exception.getMessage())) from error


def _local(path: str) -> Path | None:
    url = urlparse(path)
    return Path(url.path if url.scheme else path) if url.scheme in ("", "file") else None


def _hadoop(path: str) -> tuple[Any, Any]:
    """A path, and the file system that it is in."""
    from pyspark import SparkContext  # noqa: PLC0415  a folder needs no Spark

    context: Any = SparkContext._active_spark_context
    assert context is not None, "a file system of Hadoop needs a session"
    where = context._jvm.org.apache.hadoop.fs.Path(path)
    return where, where.getFileSystem(context._jsc.hadoopConfiguration())


def _jvm() -> Any:
    from pyspark import SparkContext  # noqa: PLC0415

    return SparkContext._jvm
