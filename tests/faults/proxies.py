"""Links that can be cut without root: every connection between nodes goes through a proxy that can stop passing bytes.

Each node advertises its proxy. Who has connected is found by the process at the other end of the socket, so that one
proxy per node serves all directed pairs. A cut link holds bytes back and loses none, as a network that comes back does.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from tests.faults.network import CLIENTS
from tests.support.nodes import free_ports
from tests.support.patience import PATIENCE_SECONDS

_CHUNK: Final = 1 << 16


class Links:
    """Which directed links are cut. Lives on the proxies' loop."""

    def __init__(self) -> None:
        self._cut: set[tuple[int, int]] = set()
        self._healed = asyncio.Event()

    def cut(self, source: int, target: int) -> None:
        self._cut.add((source, target))

    def heal(self) -> None:
        self._cut.clear()
        self._healed.set()
        self._healed = asyncio.Event()

    async def passable(self, source: int, target: int) -> None:
        while (source, target) in self._cut:
            await self._healed.wait()


class Proxies:
    """A network on the loopback device whose links can be cut."""

    can_cut = True

    def __init__(self, nodes: int) -> None:
        self._behind = free_ports(2 * nodes)
        self._pids: dict[int, int] = {}
        self._ports: dict[int, int] = {}
        """A port behind a proxy to the port of the proxy."""
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._pumps: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()
        self._links: Links = self._call(self._start(nodes))

    def address(self, node: int) -> tuple[str, int, int]:
        return "127.0.0.1", self._behind[2 * node - 2], self._behind[2 * node - 1]

    def advertised(self, node: int) -> tuple[str, int, int]:
        host, port, controller_port = self.address(node)
        return host, self._ports[port], self._ports[controller_port]

    def prefix(self, node: int) -> list[str]:
        return []

    def started(self, node: int, pid: int) -> None:
        self._pids[node] = pid

    def cut(self, source: int, target: int) -> None:
        self._loop.call_soon_threadsafe(self._links.cut, source, target)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._links.heal)

    def close(self) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    async def _start(self, nodes: int) -> Links:
        for node in range(1, nodes + 1):
            for port in self.address(node)[1:]:
                await self._listen(node, port)
        return Links()

    async def _listen(self, node: int, port: int) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._serve(node, port, reader, writer))
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._ports[port] = server.sockets[0].getsockname()[1]
        self._servers.append(server)

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._pumps):
            task.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _serve(self, target: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = self._who(*writer.get_extra_info("peername")[:2])
        try:
            await self._links.passable(source, target)
            await self._links.passable(target, source)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(
                self._pump(source, target, reader, far_writer), self._pump(target, source, far_reader, writer)
            )
        finally:
            writer.transport.abort()
            far_writer.transport.abort()

    async def _pump(self, source: int, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._links.passable(source, target)
                writer.write(data)
                await writer.drain()
            await self._links.passable(source, target)
            writer.close()

    def _who(self, host: str, port: int) -> int:
        """The node whose process has this end of the connection; CLIENTS if it is none of them."""
        inode = _inode(host, port)
        for node, pid in self._pids.items():
            if _has_socket(pid, inode):
                return node
        return CLIENTS


def _inode(host: str, port: int) -> str:
    """Of the socket that is bound to this address, from the kernel's table of connections."""
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as lines:
            for line in lines:
                fields = line.split()
                if fields[1].endswith(f":{port:04X}") and fields[3] == "01":
                    return fields[9]
    return ""


def _has_socket(pid: int, inode: str) -> bool:
    if not inode:
        return False
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(descriptor.readlink()) == f"socket:[{inode}]":
                    return True
    return False
