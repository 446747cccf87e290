"""The process: memory, processor, descriptors, the interpreter. From /proc where there is one."""

import gc
import os
import platform
import resource
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ottla import __version__
from ottla.metrics import names
from ottla.metrics.text import SLICE, Family, Value, labels, one, some

_PROC: Final = Path("/proc/self")
_DISK: Final = {"read_bytes": names.DISK_READ, "write_bytes": names.DISK_WRITTEN}


def pieces() -> Iterator[str]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield one(names.CPU_SECONDS, round(usage.ru_utime + usage.ru_stime, 6))
    yield one(names.MAX_FDS, soft) + one(names.THREADS, threading.active_count())
    yield "".join(one(family, value) for family, value in _from_proc())
    yield from _open_descriptors()
    yield _interpreter()
    yield some(names.BUILD_INFO, [(labels(version=__version__), 1)])


def _from_proc() -> Iterator[tuple[Family, Value]]:
    """Nothing where the system has no /proc."""
    try:
        stat = (_PROC / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        boot = next(
            line for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines() if line.startswith("btime")
        )
        written = dict(line.split(": ") for line in (_PROC / "io").read_text(encoding="utf-8").splitlines())
    except OSError:
        return
    yield names.VIRTUAL, int(stat[20])
    yield names.RESIDENT, int(stat[21]) * resource.getpagesize()
    yield names.START_TIME, int(boot.split()[1]) + int(stat[19]) / os.sysconf("SC_CLK_TCK")
    for field, family in _DISK.items():
        yield family, int(written[field])


def _open_descriptors() -> Iterator[str]:
    """There may be tens of thousands, and the system gives them one by one."""
    count = 0
    try:
        with os.scandir(_PROC / "fd") as found:
            for _ in found:
                count += 1
                if count % SLICE == 0:
                    yield ""
    except OSError:
        return
    yield one(names.OPEN_FDS, count - 1)  # without the one that was looked through


def _interpreter() -> str:
    major, minor, patch = platform.python_version_tuple()
    told = labels(
        implementation=platform.python_implementation(),
        major=major,
        minor=minor,
        patchlevel=patch,
        version=sys.version.split()[0],
    )
    stats = list(enumerate(gc.get_stats()))
    return some(names.PYTHON_INFO, [(told, 1)]) + "".join(
        some(family, [(labels(generation=generation), stat[field]) for generation, stat in stats])
        for family, field in (
            (names.GC_COLLECTIONS, "collections"),
            (names.GC_COLLECTED, "collected"),
            (names.GC_UNCOLLECTABLE, "uncollectable"),
        )
    )
