"""Carries out what the quorum core asks for: votes to the disk, batches to the log, commits to those who wait."""

import asyncio
from collections.abc import Callable, Sequence

from ottla.model.ids import Millis, Uuid, uuid_text
from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.protocol.codec import Message
from ottla.raft.core import Advance, AppendControl, Effect, EpochStarted, Flushed, Persist, Quorum, RequestVotes
from ottla.raft.voters import VoterSet, static_voters
from ottla.runtime.disk import DiskThread, GroupCommit
from ottla.runtime.formatting import local_voter
from ottla.runtime.metadata_log import MetadataLog, MetadataLogError
from ottla.runtime.runner import Placed


class RaftDriver:
    """On the loop, `on_advance` hears of each new high watermark and `on_failed` of the end of the disk."""

    __slots__ = ("_clock", "_disk", "_on_advance", "flushes", "metadata_log", "quorum")

    def __init__(
        self,
        metadata_log: MetadataLog,
        quorum: Quorum,
        disk: DiskThread,
        clock: Clock,
        on_advance: Callable[[int], None],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        self.metadata_log = metadata_log
        self.quorum = quorum
        self._disk = disk
        self._clock = clock
        self._on_advance = on_advance
        self.flushes = GroupCommit(metadata_log.log, disk, self._flushed, on_failed)

    async def start(self) -> None:
        """Elects a leader and begins its epoch. The caller goes on to append; the first commit covers it all."""
        for effect in self.quorum.tick(self._clock.monotonic()):
            await self._perform(effect)
        self.commit()

    async def _perform(self, effect: Effect) -> None:
        match effect:
            case Persist(state):
                await self._in_thread(lambda: self.metadata_log.write_election(state, self.quorum.voters.ids))
            case AppendControl(epoch, records):
                start = self.metadata_log.log.log_end_offset
                self.metadata_log.epoch = epoch
                self.metadata_log.append_control(records)
                for follow_up in self.quorum.step(EpochStarted(start)):
                    await self._perform(follow_up)
            case Advance(offset):
                self._on_advance(offset)
            case RequestVotes():
                raise MetadataLogError("this quorum has other voters, and ottla cannot ask them for their vote yet")

    def _flushed(self, end_offset: int) -> None:
        for effect in self.quorum.step(Flushed(end_offset)):
            assert isinstance(effect, Advance), "a flush only ever moves the high watermark"
            self._on_advance(effect.offset)

    async def _in_thread(self, job: Callable[[], None]) -> None:
        waiter = asyncio.get_running_loop().create_future()

        def done(error: BaseException | None) -> None:
            if waiter.done():
                return
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

        self._disk.run(job, done)
        await waiter

    async def settled(self) -> None:
        """Everything given to the disk so far is done, and those who asked have been told."""
        await self._in_thread(lambda: None)

    def append(self, records: Sequence[Message]) -> Placed:
        return self.metadata_log.append(records)

    def commit(self) -> None:
        self.flushes.request()


def start_quorum(settings: Settings, metadata_log: MetadataLog, directory_id: Uuid, now: Millis) -> Quorum:
    """The core as the log and the configuration describe it. Raises MetadataLogError for a quorum we cannot run."""
    facts = metadata_log.quorum
    local = local_voter(settings, directory_id)
    voters = facts.voters
    if facts.kraft_version == 0:
        listeners = settings.controller_listener_names
        voters = static_voters([(v.id, v.host, v.port) for v in settings.voters], listeners[0] if listeners else "")
        local = voters.find(settings.node_id) or local
    if voters is None or not voters.voters:
        raise MetadataLogError(
            f"{metadata_log.settings.path} names no voters. It was formatted for static voters: set "
            "controller.quorum.voters."
        )
    _refuse_unsupported(settings, voters, directory_id, dynamic=facts.kraft_version > 0)
    return Quorum.start(
        local,
        voters,
        kraft_version=facts.kraft_version,
        voters_offset=facts.voters_offset,
        election=metadata_log.read_election(),
        last_log_epoch=metadata_log.last_epoch,
        now=now,
    )


def _refuse_unsupported(settings: Settings, voters: VoterSet, directory_id: Uuid, *, dynamic: bool) -> None:
    if voters.ids != (settings.node_id,):
        raise MetadataLogError(
            f"The controllers of this cluster are {', '.join(map(str, voters.ids))}, this is node {settings.node_id}: "
            "ottla runs a quorum of one so far."
        )
    known = voters.voters[0].directory_id
    if dynamic and known != directory_id:
        raise MetadataLogError(
            f"Voter {settings.node_id} is known with directory {uuid_text(known)}, but meta.properties says "
            f"{uuid_text(directory_id)}: this is not the disk the quorum was formatted with."
        )
