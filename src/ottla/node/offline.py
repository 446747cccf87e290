"""A change of the metadata where no node runs: the directory's own controller decides it, and stops again.

For the first user of a cluster, who must be there before anybody can log in to make one (KIP-900 does it with a step of
formatting). A quorum of several cannot be asked by one of its nodes alone.
"""

import asyncio

from ottla.model.properties import Settings
from ottla.net.peer import PLAIN, Way
from ottla.node.node import StartFailed
from ottla.node.services import Ending
from ottla.node.storage import Storage
from ottla.node.surroundings import Surroundings
from ottla.protocol.codec import Request, ResponseT_co
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.formatting import FormatError
from ottla.runtime.metadata_log import MetadataLogError
from ottla.storage.directory import DirectoryInUse
from ottla.storage.fs import CorruptLog, StorageError


def decide(settings: Settings, request: Request[ResponseT_co]) -> ResponseT_co:
    """The answer, when the change is on the disk. A new directory is formatted on the way. Raises StartFailed."""
    if not settings.is_controller or len(settings.voters) > 1 or len(settings.bootstrap_controllers) > 1:
        raise StartFailed(
            f"{settings.metadata_log_dir} is one of several controllers', and a change takes a majority of them: start "
            "the cluster, and ask it with --bootstrap"
        )
    try:
        return asyncio.run(_decide(settings, request))
    except DirectoryInUse as error:
        raise StartFailed(f"{error} Ask it with --bootstrap instead.") from error
    except (FormatError, MetadataLogError, CorruptLog, StorageError) as error:
        raise StartFailed(str(error)) from error


async def _decide(settings: Settings, request: Request[ResponseT_co]) -> ResponseT_co:
    world = Surroundings()
    settings = settings.with_host_name(world.host_name)
    storage = Storage(settings, world)
    try:
        await storage.start()
        peers = world.peers(asyncio.get_running_loop(), f"node-{settings.node_id}", _nobody)
        control_plane = ControlPlane.open(
            settings, peers=peers, files=storage.files, clock=world.clock, ids=world.ids, disk=world.disk()
        )
        try:
            await control_plane.start()
            storage.identify()
            return await control_plane.submit_here(request)
        finally:
            await control_plane.close()
            peers.close()
    finally:
        await storage.stop(Ending(clean=True, hand_over=False))


def _nobody(lane: str) -> Way:
    return PLAIN
