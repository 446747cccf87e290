"""What a process costs: CPU and memory of it and its children, as the kernel counts them in /proc."""

import os
from pathlib import Path
from typing import NamedTuple

TICK_SECONDS = 1.0 / os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


class Cpu(NamedTuple):
    """CPU seconds, all threads together."""

    user: float
    system: float

    @property
    def total(self) -> float:
        return self.user + self.system

    def since(self, earlier: "Cpu") -> "Cpu":
        return Cpu(self.user - earlier.user, self.system - earlier.system)


class Memory(NamedTuple):
    """Bytes. `resident` counts shared pages in full, `proportional` by share; `peak` is the highest resident so far."""

    resident: int
    peak: int
    proportional: int


def cpu_of(pid: int) -> Cpu:
    """CPU of the process, its living children, and the children it has waited for."""
    user = system = 0
    for member in process_tree(pid):
        # The command name is in parentheses and may hold spaces: fields are counted from the last one.
        try:
            fields = (PROC / str(member) / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # a child that has just ended: its parent has waited for it, or will
        utime, stime, waited_utime, waited_stime = (int(ticks) for ticks in fields[11:15])
        user += utime + waited_utime
        system += stime + waited_stime
    return Cpu(user * TICK_SECONDS, system * TICK_SECONDS)


class Meter:
    """CPU of a process and of everything that ever ran below it, for trees in which children come and go unnoticed:
    pyspark's daemon ignores SIGCHLD, so the kernel adds what its workers used to nobody. `total` has to be called a few
    times a second; what a process used after the last call before its end is missed."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: dict[tuple[int, str], int] = {}
        """Ticks by process id and start time: ids are used again."""

    def total(self) -> float:
        """Seconds."""
        for member in process_tree(self._pid):
            try:
                fields = (PROC / str(member) / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            self._seen[member, fields[19]] = int(fields[11]) + int(fields[12])
        return sum(self._seen.values()) * TICK_SECONDS


def memory_of(pid: int) -> Memory:
    resident = peak = proportional = 0
    for member in process_tree(pid):
        try:
            status = _kilobytes(PROC / str(member) / "status")
            shares = _kilobytes(PROC / str(member) / "smaps_rollup")
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
        # Of one that has ended and was not waited for there is a status that says nothing of memory.
        resident += status.get("VmRSS", 0)
        peak += status.get("VmHWM", 0)
        proportional += shares.get("Pss", 0)
    return Memory(resident * 1024, peak * 1024, proportional * 1024)


def process_tree(pid: int) -> list[int]:
    """The process and everything below it."""
    members = [pid]
    for member in members:
        try:
            for task in (PROC / str(member) / "task").iterdir():
                members += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
    return members


def _kilobytes(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0].rstrip(":"): int(pair[1]) for pair in pairs if len(pair) == 3 and pair[2] == "kB"}
