"""A node that cannot start leaves nothing behind, whatever it was that kept it from it."""

import asyncio
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ottla.model.properties import Settings
from ottla.node.node import Node
from ottla.node.surroundings import Surroundings
from ottla.runtime.disk import InlineDisk
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import RealFilesystem
from ottla.storage.segment import OpenFiles


class WatchedDisk(InlineDisk):
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_a_failure_that_nobody_foresaw_closes_what_was_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(tmp_path),
            "http.listeners": "http://127.0.0.1:0",
        }
    )
    disk = WatchedDisk()

    def no_socket(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("nobody foresaw this")

    async def main() -> None:
        # Only HTTP takes its port this way: the metadata log is open by then, and the quorum not yet joined.
        monkeypatch.setattr(socket, "create_server", no_socket)
        node = Node(settings, surroundings=Surroundings(disk=lambda: disk))
        with pytest.raises(RuntimeError, match="nobody foresaw this"):
            await node.start()
        assert disk.closed
        assert await node.health() == {}

    asyncio.run(main())
    LogDirectory.open(OpenFiles(RealFilesystem()), str(tmp_path)).close(clean=False)  # it is locked no more
