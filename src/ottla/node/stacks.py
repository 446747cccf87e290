"""kill -3: where every thread and every task of the node stands, as a JVM tells it; the node goes on."""

import asyncio
import logging
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Final

logger = logging.getLogger(__name__)

_MOST_TASKS: Final = 1_000
"""Every waiting client has one; a log is for reading."""


def tell_stacks_on_sigquit(loop: asyncio.AbstractEventLoop) -> None:
    """By Python's own handler, not the loop's: it is asked for when the loop does not come round."""

    def tell(number: int, frame: FrameType | None) -> None:
        logger.warning("asked by SIGQUIT where everything stands\n%s", "\n".join(stacks(loop, frame)))

    signal.signal(signal.SIGQUIT, tell)


def stacks(loop: asyncio.AbstractEventLoop, interrupted: FrameType | None) -> Iterator[str]:
    """`interrupted` is where the calling thread was before it was asked."""
    frames = sys._current_frames()
    mine = threading.get_ident()
    for thread in threading.enumerate():
        frame = interrupted if thread.ident == mine else frames.get(thread.ident or 0)
        if frame is not None:
            yield _told(f'thread "{thread.name}"', traceback.extract_stack(frame))
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    for task in tasks[:_MOST_TASKS]:
        summary = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in task.get_stack())
        yield _told(f'task "{task.get_name()}"', summary)
    if len(tasks) > _MOST_TASKS:
        yield f"and {len(tasks) - _MOST_TASKS} more tasks"


def _told(who: str, summary: traceback.StackSummary) -> str:
    return f"{who}:\n{''.join(summary.format()).rstrip()}"
