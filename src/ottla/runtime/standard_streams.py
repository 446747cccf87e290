"""Standard input, output and error of a process that lives long: none of them may end it."""

import os
import sys
from typing import Final

_STANDARD: Final = (0, 1, 2)


def open_missing() -> None:
    """`ottla … <&- >&- 2>&-`: the next files and sockets would get these numbers, and whoever writes a message to
    number 2 then writes into one of them. To be called before anything is opened."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free: this one
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:  # Python has no stream at all where print and flush expect one
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115  lives as long as we


def announce(text: str) -> None:
    """Tells whoever started a server that it serves. A pipe that nobody reads or a full disk is no reason to end it."""
    try:
        print(text, flush=True)
    except (OSError, ValueError):
        give_up_output()


def give_up_output() -> None:
    """What could not be written stays in Python's buffer: without this it would fail once more at the end."""
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, sys.stdout.fileno())
    finally:
        os.close(sink)
