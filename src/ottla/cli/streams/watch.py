"""`ottla streams run FILE --watch`: the application as a process of its own, started anew when a file of it changes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ottla.cli.output import note

WATCH: Final = "--watch"
LOOK_S: Final = 0.5


def watch(words: Sequence[str], file: str) -> int:
    """`words` are those of the command, behind `ottla`. Until Ctrl-C; gives how the last run ended."""
    command = [sys.executable, "-m", "ottla", *(word for word in words if word != WATCH)]
    asked: list[int] = []
    before = {each: signal.signal(each, lambda number, _: asked.append(number)) for each in _ENDING}
    try:
        while True:
            seen = changed_at(file)
            status = _run(command, file, seen, asked)
            if status is not None and not asked:
                note(f"waits for a change in {Path(file).resolve().parent}")
                while changed_at(file) == seen and not asked:
                    time.sleep(LOOK_S)
            if asked:
                return status or 0
            note(f"{file} or a module beside it has changed: once more")
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


def _run(command: Sequence[str], file: str, seen: Mapping[str, int], asked: Sequence[int]) -> int | None:
    """None: a file has changed, and it was stopped for that."""
    # A group of its own: what a terminal sends to ours, it is told by us, once.
    child = subprocess.Popen(command, process_group=0)
    told = False
    changed = False
    while (status := child.poll()) is None:
        changed = changed or changed_at(file) != seen
        if (changed or asked) and not told:
            told = True
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGINT)
        time.sleep(LOOK_S / 5 if told else LOOK_S)
    return None if changed else status


def changed_at(file: str) -> dict[str, int]:
    """When each Python file in the application's folder was written last."""
    found = {}
    for each in sorted(Path(file).resolve().parent.glob("*.py")):
        with suppress(OSError):
            found[str(each)] = each.stat().st_mtime_ns
    return found
