"""Workers with one `group.id` as members of a group: who leads, and which connectors fell to whom.

The type of the group is Java's, `connect`, the protocol our own, `ottla`: a connector is one query here, where Java
hands out a connector and its tasks one by one, to workers that must have its jar. A Java worker that is started with
the same group.id, while workers of ours are there, is refused by the coordinator (INCONSISTENT_GROUP_PROTOCOL), and so
is one of ours beside Java's: the two take over from each other, they do not mix.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.member import Member
from ottla.client.errors import KafkaError
from ottla.client.membership import Assigned, MemberSettings, Peer
from ottla.connect.assignment import share_out
from ottla.connect.worker import Lead, Worker, now_ms

logger = logging.getLogger(__name__)

PROTOCOL_TYPE: Final = "connect"
PROTOCOL: Final = "ottla"


class _Metadata(msgspec.Struct, frozen=True):
    """What a worker joins with."""

    url: str
    held: tuple[str, ...] = ()


class _Part(msgspec.Struct, frozen=True):
    """What it gets."""

    leader_url: str
    connectors: tuple[str, ...] = ()
    unfinished: bool = False


class WorkerMember:
    """`run` is the life of a member; it ends with `leave`, or raises KafkaError where it cannot be in the group."""

    __slots__ = ("_member", "_url", "_worker", "failure")

    def __init__(self, worker: Worker, cluster: Cluster, settings: MemberSettings, url: str) -> None:
        self._worker = worker
        self._url = url
        self._member = Member(cluster, settings, self._assign, self)
        self.failure: str | None = None
        worker.on_connectors = self._member.rejoin

    async def run(self) -> None:
        try:
            await self._member.run()
        except KafkaError as error:
            self.failure = f"this worker cannot be in its group: {error}"
            logger.error("%s", self.failure)
            self.lost()

    def leave(self) -> None:
        self._member.leave()

    @property
    def joined(self) -> bool:
        return self._member.held is not None

    # What the member asks.

    async def prepare(self) -> Sequence[tuple[str, bytes]]:
        """Connectors go on meanwhile: only what is taken away stops, when it is known."""
        return [(PROTOCOL, msgspec.json.encode(_Metadata(self._url, self._worker.duties.held)))]

    async def assigned(self, part: Assigned) -> None:
        mine = msgspec.json.decode(part.assignment or b'{"leader_url":""}', type=_Part)
        worker = self._worker
        if part.leads and not worker.leads and worker.topics is not None:
            worker.topics.writer.taken = False  # whoever led before is fenced with the first write
        worker.lead = Lead(part.leads, mine.leader_url or None)
        given_back = [name for name in worker.duties.held if name not in mine.connectors]
        worker.perform(worker.duties.assigned(mine.connectors, part.generation, now_ms()))
        if given_back:
            await worker.settled()  # nobody else starts them before they have ended here
        if mine.unfinished:
            self._member.rejoin()

    def lost(self) -> None:
        worker = self._worker
        worker.lead = Lead()
        worker.perform(worker.duties.lost())

    def _assign(self, protocol: str, peers: Sequence[Peer]) -> Mapping[str, bytes]:
        told = {peer.member_id: msgspec.json.decode(peer.metadata, type=_Metadata) for peer in peers}
        shares = share_out({member: each.held for member, each in told.items()}, self._worker.state.configs.connectors)
        return {
            member: msgspec.json.encode(_Part(self._url, shares.parts[member], shares.unfinished)) for member in told
        }
