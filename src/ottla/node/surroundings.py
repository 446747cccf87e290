"""What a node touches of the world: clock, dice, disk and network. A simulated cluster has others."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.front.admission import Doors
from ottla.broker.front.server import Server, SocketOptions
from ottla.model.ports import Clock, Ids
from ottla.net.connection import ReadBudget
from ottla.net.host_name import canonical_host_name
from ottla.net.peer import Peers, SocketPeers, Ways
from ottla.runtime.cleaner.cleaners import Cleaner, CleanerProcess, Pace
from ottla.runtime.clock import SystemClock, SystemIds
from ottla.runtime.disk import DiskThread, SyncThread
from ottla.storage.fs import Filesystem, RealFilesystem

Listen = Callable[[asyncio.AbstractEventLoop, Doors, ReadBudget, SocketOptions], Server]


class Surroundings(NamedTuple):
    clock: Clock = SystemClock()
    ids: Ids = SystemIds()
    filesystem: Filesystem = RealFilesystem()
    disk: Callable[[], DiskThread] = SyncThread
    cleaner: Callable[[Pace], Cleaner] = CleanerProcess
    listen: Listen = Server
    peers: Callable[[asyncio.AbstractEventLoop, str, Ways], Peers] = SocketPeers
    host_name: Callable[[], str] = canonical_host_name
    registry: Callable[[], str | None] = lambda: None
    """Where schemas are to be asked for, if the settings do not say and no registry is beside the node."""
    settled: Callable[[], None] = lambda: None
    """Much was made that lives long: for the collector of a process that is the node's own (`node.heap`)."""
