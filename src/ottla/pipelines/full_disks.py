"""A disk that is full: recognised by what is said of it, and told with its folder and what can be done."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

_SAID: Final = re.compile(r"No space left on device|Disk quota exceeded|not enough space on the disk")
"""In the words of Linux, of its quotas and of Windows, whoever passes them on: Python, Java or RocksDB."""
NO_ROOM_BYTES: Final = 1 << 20
"""Who could not write has tried with less."""


def is_of_full_disk(text: str) -> bool:
    return _SAID.search(text) is not None


def full_disk(text: str, folders: Mapping[str, str]) -> str | None:
    """What to do where a disk is full, if that is what went wrong. `folders`: the setting of each, and its path."""
    if not is_of_full_disk(text):
        return None
    there = {setting: path for setting, path in folders.items() if os.path.isdir(path)}
    named = [setting for setting, path in there.items() if path in text]
    # A path may be in the other: the longer one is meant. Where none is named it is the one with the least room.
    by_room = sorted(there, key=lambda setting: shutil.disk_usage(there[setting]).free)
    full = max(named, key=lambda setting: len(there[setting])) if named else next(iter(by_room), None)
    where = "a disk" if full is None else f"the disk of {there[full]} ({full})"
    return (
        f"no space is left on {where}. Nothing is lost: the batch has not ended, and runs again at the next start. "
        f"Make room, or let {full or 'the folder'} be on a larger disk, and start again"
    )


@contextmanager
def told_where_full(folders: Iterable[str]) -> Iterator[None]:
    """Spark's side of a task ends without a word when it cannot write the state, and Python finds the line cut."""
    try:
        yield
    except (EOFError, ConnectionError) as error:
        for folder in folders:
            if os.path.isdir(folder) and shutil.disk_usage(folder).free < NO_ROOM_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder) from error
        raise
