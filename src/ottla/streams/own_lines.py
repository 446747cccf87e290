"""Out of a traceback, the lines of the user's own files: what lies between them is ours, Spark's or Python's."""

import sysconfig
import traceback
from functools import cache

import ottla


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """From the outermost to the one in which it was raised, or which called what raised it."""
    foreign = _foreign()
    return [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(foreign)]


def own_lines(error: BaseException) -> str:
    """As Python shows them, each line behind a line break; nothing if no file of the user's is in it."""
    return "".join(f"\n{text.rstrip()}" for text in traceback.format_list(own_frames(error)))


def place_of(error: BaseException) -> str | None:
    """The innermost of the user's lines: `helper.py, line 2`."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}, line {error.lineno}"
    frames = own_frames(error)
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else None


@cache
def _foreign() -> tuple[str, ...]:
    """How the names of files begin that are not the user's."""
    installed = {path for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))}
    folders = sorted({*installed, str(ottla.__file__).rpartition("/")[0]})
    return ("<frozen ", *(f"{each}/" for each in folders))
