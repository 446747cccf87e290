"""The process around a node: its loop, its signals, its first words."""

import asyncio
import gc
import logging
import os
import sys

from ottla import __version__
from ottla.model.properties import Settings
from ottla.node import options
from ottla.node.node import Node, StartFailed
from ottla.runtime.stop_signals import stop_signals


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415  has no wheel for Windows
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run(settings: Settings) -> int:
    """Runs a node until SIGTERM, SIGINT or SIGHUP. Returns the exit code of the process."""
    logging.basicConfig(
        level=os.environ.get("OTTLA_LOG_LEVEL", "INFO").upper(),
        format=f"%(asctime)s %(levelname)s {_who(settings)}%(message)s",
        stream=sys.stderr,
    )
    options.raise_descriptor_limit()
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(settings))
    except StartFailed as error:
        print(f"ottla cannot start: {error}", file=sys.stderr)
        return 1
    finally:
        loop.close()


def _who(settings: Settings) -> str:
    """Several nodes on one machine often share a terminal."""
    alone = len(settings.voters) == 1 and settings.is_broker and settings.is_controller
    return "" if alone else f"node {settings.node_id}: "


async def _serve(settings: Settings) -> int:
    node = Node(settings)
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in stop_signals():
        loop.add_signal_handler(number, asked.set)
    starting = loop.create_task(node.start())
    waits = [loop.create_task(asked.wait()), loop.create_task(node.stopped.wait())]
    # A node of several waits for the others as long as it takes, so it must be possible to stop one that starts.
    await asyncio.wait([starting, *waits], return_when=asyncio.FIRST_COMPLETED)
    try:
        if starting.done():
            await starting
            _banner(node)
            # What is alive now lives as long as the node: the collector need not walk it again and again.
            gc.collect()
            gc.freeze()
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        else:
            starting.cancel()
            await asyncio.wait([starting])
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
    failed = node.stopped.is_set()
    await node.stop(clean=not failed)
    return 1 if failed else 0


def _banner(node: Node) -> None:
    image = node.control_plane.image
    print(f"ottla {__version__} is ready")
    for listener in node.listeners:
        print(f"  kafka    {listener.host}:{listener.port}  ({listener.name})")
    if not node.listeners:
        for listener in node.settings.controller_listeners:
            print(f"  control  {listener.host}:{listener.port}  ({listener.name})")
    print(f"  data     {', '.join(node.settings.log_dirs)}")
    print(f"  cluster  {image.cluster_id}, node {node.settings.node_id}, {len(image.topics)} topics")
    print("  stop with Ctrl-C", flush=True)
