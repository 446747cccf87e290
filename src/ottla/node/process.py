"""The process around a node: its loop, its signals, its first words."""

import asyncio
import gc
import logging
import signal
from typing import Final

from ottla import __version__
from ottla.model.properties import Settings
from ottla.node import heap, options
from ottla.node.event_loop import new_event_loop
from ottla.node.logs import tell_failed_start, write_logs
from ottla.node.node import Node, StartFailed
from ottla.node.stacks import tell_stacks_on_sigquit
from ottla.node.surroundings import Surroundings
from ottla.runtime.standard_streams import announce
from ottla.runtime.stop_signals import WHOLE_CLUSTER_STOPS, stop_signals

logger = logging.getLogger(__name__)

_YOUNG_AT_START: Final = 50_000
"""Objects that are made between two rounds of the collector while a node starts. Nearly all of them are there to stay,
such as 100,000 ACLs out of the log; to walk them again and again takes a fifth of such a start."""


def run(settings: Settings, owner: int | None = None) -> int:
    """Runs a node until SIGTERM, SIGINT or SIGHUP. Returns the exit code of the process. `owner` is a descriptor that
    ends with the process without which this one is not to live."""
    write_logs(settings)
    for warning in settings.warnings:
        logger.warning("%s", warning)
    options.raise_descriptor_limit()
    _, *older = usual = gc.get_threshold()
    gc.set_threshold(_YOUNG_AT_START, *older)
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(settings, owner, usual))
    except StartFailed as error:
        tell_failed_start(settings, error)
        return 1
    finally:
        loop.close()


async def _serve(settings: Settings, owner: int | None, gc_thresholds: tuple[int, int, int]) -> int:
    node = Node(settings, surroundings=Surroundings(settled=heap.settled))
    loop = asyncio.get_running_loop()
    tell_stacks_on_sigquit(loop)
    asked = asyncio.Event()
    all_stop = asyncio.Event()
    for number in stop_signals():
        loop.add_signal_handler(number, _stop, signal.Signals(number), asked)
    loop.add_signal_handler(WHOLE_CLUSTER_STOPS, _stop, WHOLE_CLUSTER_STOPS, all_stop, asked)
    if owner is not None:
        loop.add_reader(owner, _owner_is_gone, loop, owner, all_stop, asked)
    starting = loop.create_task(node.start())
    waits = [loop.create_task(asked.wait()), loop.create_task(node.stopped.wait())]
    # A node of several waits for the others as long as it takes, so it must be possible to stop one that starts.
    await asyncio.wait([starting, *waits], return_when=asyncio.FIRST_COMPLETED)
    try:
        if starting.done():
            await starting
            announce(_banner(node))
            # What is alive now lives as long as the node: the collector need not walk it again and again.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*gc_thresholds)
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        else:
            starting.cancel()
            await asyncio.wait([starting])
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
    failed = node.stopped.is_set()
    began = loop.time()
    await node.stop(clean=not failed, hand_over=not all_stop.is_set())
    logger.info("stopped in %.1f s", loop.time() - began)
    return 1 if failed else 0


def _stop(number: signal.Signals, *events: asyncio.Event) -> None:
    if not events[-1].is_set():
        logger.info("stopping: %s was received", number.name)
    for event in events:
        event.set()


def _owner_is_gone(loop: asyncio.AbstractEventLoop, owner: int, *events: asyncio.Event) -> None:
    loop.remove_reader(owner)
    logger.info("stopping: the process that started this node is gone")
    for event in events:
        event.set()


def _banner(node: Node) -> str:
    image = node.control_plane.image
    told = sorted(node.banner(), key=lambda line: not line.startswith("kafka"))  # what most look for comes first
    lines = [f"ottla {__version__} is ready", *(f"  {line}" for line in told)]
    topics = f"{len(image.topics)} {'topic' if len(image.topics) == 1 else 'topics'}"
    lines += [
        f"  data     {', '.join(node.settings.log_dirs)}",
        f"  cluster  {image.cluster_id}, node {node.settings.node_id}, {topics}",
        "  stop with Ctrl-C",
    ]
    return "\n".join(lines)
