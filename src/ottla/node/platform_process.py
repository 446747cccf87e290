"""The platform's process: `python -m ottla.node.platform_process NUMBER`, started by `node.platform`.

NUMBER is a socket of the node that owns it, which says what to do (`Work`) and whose end is the end of this one. The
ports come open, with the first connection waiting in one of them.
"""

import asyncio
import gc
import logging
import os
import socket
import threading
from typing import Final, Protocol

from ottla.client.addresses import parse_bootstrap
from ottla.client.errors import ClientError
from ottla.client.security import security
from ottla.connect.failures import ConnectCannotStart
from ottla.model.extras import missing
from ottla.model.properties import Settings
from ottla.node.event_loop import new_event_loop
from ottla.node.logs import write_logs
from ottla.node.platform import Door, Keep, Lost, Work
from ottla.registry.journal.topic import WrongTopic
from ottla.registry.service import StartFailed
from ottla.runtime.parent import Gone, Parent

logger = logging.getLogger(__name__)

CANNOT: Final = (StartFailed, WrongTopic, ConnectCannotStart)
"""What cannot be mended by waiting."""


class PlatformService(Protocol):
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


def connect(work: Work, doors: list[Door], ports: list[socket.socket]) -> PlatformService:
    from ottla.connect.service import ConnectService  # noqa: PLC0415  whoever is not asked for is not loaded
    from ottla.connect.settings import ConnectSettings  # noqa: PLC0415
    from ottla.node.connect_process import runner_maker  # noqa: PLC0415

    listeners = ",".join(door.address for door in doors)
    settings = ConnectSettings.beside_a_node({**work.given, "connect.listeners": listeners})
    return ConnectService(
        settings,
        parse_bootstrap(work.bootstrap["connect"]),
        runner_maker(settings),
        security=security(settings.client),
        ports=ports,
    )


def registry(work: Work, doors: list[Door], ports: list[socket.socket]) -> PlatformService:
    from ottla.registry.service import RegistryService  # noqa: PLC0415  whoever is not asked for is not loaded
    from ottla.registry.settings import RegistrySettings  # noqa: PLC0415

    listeners = ",".join(door.address for door in doors)
    settings = RegistrySettings.beside_a_node({**work.given, "registry.listeners": listeners})
    return RegistryService(
        settings, parse_bootstrap(work.bootstrap["registry"]), security=security(settings.client), ports=ports
    )


def sql(work: Work, doors: list[Door], ports: list[socket.socket]) -> PlatformService:
    from ottla.node.sql_process import SqlWithSpark  # noqa: PLC0415
    from ottla.sql.settings import SqlSettings  # noqa: PLC0415

    given = dict(work.given)
    beside = next((door.address for door in work.doors if door.service == "registry"), None)
    if beside is not None:
        given.setdefault("ksql.schema.registry.url", beside)
    first = Settings.from_properties(work.given).get_list("log.dirs")
    given.setdefault("sql.state.dir", f"{(first or ['ottla-data'])[0]}-sql")
    given["sql.listeners"] = ",".join(door.address for door in doors)
    worker = next((door.address for door in work.doors if door.service == "connect"), None)
    if worker is not None:
        given.setdefault("ksql.connect.url", worker)
    settings = SqlSettings.beside_a_node(given)
    return SqlWithSpark(settings, parse_bootstrap(work.bootstrap["sql"]), client=settings.client, ports=ports)


MAKERS = {"registry": registry, "connect": connect, "sql": sql}
ON_DEMAND: Final = ("connect", "sql")
"""They make topics when they start, so they wait until somebody wants them; and then they are there for good."""


_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


async def serve(work: Work, parent: Parent, over: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(_run(name, work, parent)) for name in MAKERS]
        await over.wait()
        for each in running:
            each.cancel()


async def _run(name: str, work: Work, parent: Parent) -> None:
    """One service until it is cancelled. Brokers that cannot be reached are waited for, and so are its clients; what
    cannot be mended by waiting is told to the node, which lets go of the ports."""
    doors = [door for door in work.doors if door.service == name]
    pause_s = _FIRST_PAUSE_S
    if name in ON_DEMAND and doors:
        if name not in work.at_once:
            await _somebody_came(doors)
        parent.say(Keep(name))
    while doors:
        service: PlatformService | None = None
        try:
            service = MAKERS[name](work, doors, [_port(door) for door in doors])
            await service.start()
            gc.collect()
            gc.freeze()  # what is alive now lives as long as the process
            await asyncio.get_running_loop().create_future()
        except (ClientError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            logger.warning("the %s cannot start yet, and tries again in %g s: %s", name, pause_s, why)
        except (*CANNOT, ImportError, ValueError) as error:
            for door in doors:
                os.close(door.descriptor)
            parent.say(Lost(name, missing(error) if isinstance(error, ImportError) else str(error)))
            return
        finally:
            if service is not None:
                await service.stop()
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)


async def _somebody_came(doors: list[Door]) -> None:
    """Returns when a connection waits in one of the ports."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    for door in doors:
        loop.add_reader(door.descriptor, came.set)
    try:
        await came.wait()
    finally:
        for door in doors:
            loop.remove_reader(door.descriptor)


def _port(door: Door) -> socket.socket:
    """A descriptor of its own for each attempt, which closes it."""
    return socket.socket(fileno=os.dup(door.descriptor))


def main() -> None:
    parent = Parent.of_this_process()
    work = parent.hear()
    assert isinstance(work, Work)
    write_logs(Settings.from_properties(work.given))
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    over = asyncio.Event()
    threading.Thread(target=_hear_the_end, args=(parent, loop, over), daemon=True).start()
    try:
        loop.run_until_complete(serve(work, parent, over))
    finally:
        loop.close()


def _hear_the_end(parent: Parent, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    try:
        while True:
            parent.hear()
    except Gone:
        loop.call_soon_threadsafe(over.set)


if __name__ == "__main__":
    main()
