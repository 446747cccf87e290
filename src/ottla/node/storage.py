"""The log directories of a node: opened and locked before anything is read, closed last."""

import asyncio
import logging
from contextlib import ExitStack

from ottla.broker.events import Event
from ottla.model.properties import Settings
from ottla.node import options
from ottla.node.services import Ending, Health, Service
from ottla.node.surroundings import Surroundings
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import StorageError
from ottla.storage.segment import OpenFiles

logger = logging.getLogger(__name__)


class Storage(Service):
    name = "storage"

    def __init__(self, settings: Settings, world: Surroundings) -> None:
        self._settings = settings
        self.files = OpenFiles(world.filesystem, options.open_files(settings))
        self.directories: list[LogDirectory] = []
        """Of the data and of the metadata."""
        self.lost: Event[[]] = Event()
        """A directory has just failed."""
        self.broker_epoch = -1
        """For the markers of a clean shutdown (KIP-966): the broker leaves it here when it goes."""

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        reserve = self._settings.get_int("ottla.disk.reserve.bytes")

        def failed(error: StorageError) -> None:
            """Called by whichever thread noticed, so the node's own thread looks what that means."""
            loop.call_soon_threadsafe(self._failed, error)

        for path in dict.fromkeys((*self._settings.log_dirs, self._settings.metadata_log_dir)):
            try:
                opened = LogDirectory.open(self.files, path, reserve_bytes=reserve, on_offline=failed)
            except StorageError as error:
                if path == self._settings.metadata_log_dir:
                    raise
                logger.error("%s. The node starts without it.", error.strerror)
                opened = LogDirectory.absent(self.files, path, error)
            self.directories.append(opened)

    @property
    def of_data(self) -> list[LogDirectory]:
        return [each for each in self.directories if each.path in self._settings.log_dirs]

    @property
    def offline(self) -> list[str]:
        return [each.path for each in self.directories if not each.is_online]

    def identify(self) -> None:
        """Once all have their ids, from their files or new ones."""
        for directory in self.directories:
            if directory.is_online:
                directory.identify()

    def _failed(self, error: StorageError) -> None:
        if self.directories:  # else the node has stopped, or could not start, and has said so itself
            logger.error("%s", error)
            self.lost.tell()

    async def health(self) -> Health:
        reasons = {}
        if self.offline:
            reasons["offline_directories"] = f"log directories that failed: {', '.join(self.offline)}"
        full = [each.path for each in self.directories if each.is_online and each.is_full]
        if full:
            reasons["full_directories"] = f"log directories without room: {', '.join(full)}"
        return Health.of(reasons)

    async def stop(self, ending: Ending) -> None:
        with ExitStack() as stack:  # each of them, even if one fails to
            for directory in self.directories:
                stack.callback(directory.close, clean=ending.clean, broker_epoch=self.broker_epoch)
        self.directories.clear()

    def abandon(self) -> None:
        for directory in self.directories:
            directory.close(clean=False)
