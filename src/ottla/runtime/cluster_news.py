"""Tells in the log what happens to the cluster: brokers, topics, leaders, in-sync replicas, the active controller.

The node with the active controller tells it, so that it is told once; the others do at DEBUG. What comes within a
moment is told together.
"""

import asyncio
import logging
from typing import Final

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.metadata.news import News
from ottla.runtime.control_plane import ControlPlane

logger = logging.getLogger(__name__)

_MOMENT_SECONDS: Final = 0.2


class ClusterNews:
    __slots__ = ("_control_plane", "_handle", "_leader", "_loop", "_news", "_node_id")

    def __init__(self, loop: asyncio.AbstractEventLoop, control_plane: ControlPlane, node_id: int) -> None:
        self._loop = loop
        self._control_plane = control_plane
        self._news = News(node_id)
        self._node_id = node_id
        self._handle: asyncio.TimerHandle | None = None
        self._leader = control_plane.leader_id

    def start(self) -> None:
        """What is known by now is no news."""
        self._control_plane.subscribe(self._heard)
        self._control_plane.on_leader(self._other_leader)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._tell()

    def _heard(self, delta: MetadataDelta, _: MetadataImage) -> None:
        if logger.isEnabledFor(self._level()):
            self._news.note(delta)
            if self._handle is None:
                self._handle = self._loop.call_later(_MOMENT_SECONDS, self._tell)

    def _level(self) -> int:
        return logging.INFO if self._control_plane.is_active else logging.DEBUG

    def _tell(self) -> None:
        self._handle = None
        for line in self._news.take():
            logger.log(self._level(), "%s", line)

    def _other_leader(self) -> None:
        leader = self._control_plane.leader_id
        if leader not in (-1, self._leader):
            where = "this node" if leader == self._node_id else f"node {leader}"
            logger.info("%s has the active controller, epoch %d", where, self._control_plane.leader_epoch)
            self._leader = leader
