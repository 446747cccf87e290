"""Workers with one `group.id` as members of a group: who leads, and which connectors fell to whom.

The type of the group is Java's, `connect`, the protocol our own, `ottla`: a connector is one query here, where Java
hands out a connector and its tasks one by one, to workers that must have its jar. A Java worker that is started with
the same group.id, while workers of ours are there, is refused by the coordinator (INCONSISTENT_GROUP_PROTOCOL), and so
is one of ours beside Java's: the two take over from each other, they do not mix. One of ours that is refused tries
again: a worker of Java's that was killed is in the group until its session is over.

One of ours that was killed is taken out of it earlier: who leads looks whether the others still listen at their
addresses, the others look for who leads, and nobody there means that the group goes on without.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ottla.client.aio.cluster import Cluster
from ottla.client.aio.member import Member, remove
from ottla.client.errors import ClientError, KafkaError
from ottla.client.membership import Assigned, MemberSettings, Peer
from ottla.connect.assignment import share_out
from ottla.connect.peers import Peers, Seen
from ottla.connect.worker import Lead, Worker, now_ms
from ottla.model.errors import Errors

logger = logging.getLogger(__name__)

PROTOCOL_TYPE: Final = "connect"
PROTOCOL: Final = "ottla"
AGAIN_S: Final = 1.0
"""After which a worker asks once more for a group that others of another kind are in."""
WATCH_S: Final = 1.0
"""Between two looks at other workers, each of which may take as long."""


class _Metadata(msgspec.Struct, frozen=True):
    """What a worker joins with."""

    url: str
    held: tuple[str, ...] = ()


class _Part(msgspec.Struct, frozen=True):
    """What it gets."""

    leader_url: str
    connectors: tuple[str, ...] = ()
    unfinished: bool = False
    others_have_some: bool = False


class WorkerMember:
    """`run` is the life of a member; it ends with `leave`, or where it can never be in the group."""

    __slots__ = ("_cluster", "_leaving", "_member", "_others_came", "_peers", "_settings", "_url", "_worker", "failure")

    def __init__(self, worker: Worker, cluster: Cluster, settings: MemberSettings, url: str) -> None:
        self._worker = worker
        self._cluster = cluster
        self._settings = settings
        self._url = url
        self._member = self._new()
        self._leaving = asyncio.Event()
        self._peers = Peers()
        self._others_came = asyncio.Event()
        self.failure: str | None = None

    def _new(self) -> Member:
        member = Member(self._cluster, self._settings, self._assign, self)
        self._worker.on_connectors = member.rejoin
        return member

    async def run(self) -> None:
        watching = asyncio.create_task(self._watch(), name="connect-peers")
        try:
            await self._live()
        finally:
            watching.cancel()

    async def _live(self) -> None:
        while not self._leaving.is_set():
            try:
                await self._member.run()
            except KafkaError as error:
                self._refused(error)
                if error.error != Errors.INCONSISTENT_GROUP_PROTOCOL:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._leaving.wait(), AGAIN_S)
                self._member = self._new()
            else:
                return

    def _refused(self, error: KafkaError) -> None:
        why = f"this worker cannot be in its group: {error}"
        if why != self.failure:
            logger.error("%s", why)
        self.failure = why
        self.lost()

    def leave(self) -> None:
        self._leaving.set()
        self._member.leave()

    @property
    def joined(self) -> bool:
        return self._member.held is not None

    # What the member asks.

    async def prepare(self) -> Sequence[tuple[str, bytes]]:
        """Connectors go on meanwhile: only what is taken away stops, when it is known."""
        self._worker.counts.rebalances.begins(now_ms())
        return [(PROTOCOL, msgspec.json.encode(_Metadata(self._url, self._worker.duties.held)))]

    async def assigned(self, part: Assigned) -> None:
        self.failure = None
        mine = msgspec.json.decode(part.assignment or b'{"leader_url":""}', type=_Part)
        worker = self._worker
        if part.leads and not worker.leads and worker.topics is not None:
            worker.topics.writer.taken = False  # whoever led before is fenced with the first write
        worker.lead = Lead(part.leads, mine.leader_url or None)
        self._peers.are(self._others(part, mine.leader_url))
        self._others_came.set()
        kept = frozenset(mine.connectors)
        wanted = worker.state.configs.connectors
        given_back = [name for name in worker.duties.held if name not in kept and name in wanted]
        worker.perform(worker.duties.assigned(mine.connectors, part.generation, now_ms()))
        if given_back:
            await worker.settled(given_back)  # nobody else starts them before they have ended here
        worker.counts.rebalances.ends(now_ms())
        if mine.unfinished:
            self._member.rejoin()
        elif mine.others_have_some:
            worker.perform(worker.duties.may_inherit())

    def lost(self) -> None:
        self._peers.are({})
        worker = self._worker
        worker.lead = Lead()
        worker.perform(worker.duties.lost())

    # The others.

    def _others(self, part: Assigned, leader_url: str) -> Mapping[str, str]:
        """Whom this one watches: who leads all of them, and everybody who leads."""
        if not part.leads:
            return {part.leader_id: leader_url} if leader_url else {}
        told = {peer.member_id: msgspec.json.decode(peer.metadata, type=_Metadata).url for peer in part.peers}
        return {member: url for member, url in told.items() if member != part.member_id}

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._others_came.wait(), WATCH_S)
            self._others_came.clear()
            watched = list(self._peers.watched.items())
            seen = await asyncio.gather(*(_seen(url) for _, url in watched))
            for (member, url), each in zip(watched, seen, strict=True):
                if self._peers.saw(member, each):
                    await self._go_on_without(member, url)

    async def _go_on_without(self, member: str, url: str) -> None:
        logger.warning("nobody listens at %s any more: the group goes on without that worker", url)
        try:
            await remove(self._cluster, self._settings.group, member)
        except ClientError as error:  # then it is the session that ends
            logger.info("%s stays in the group until its session is over: %s", url, error)
            return
        self._member.rejoin()

    def _assign(self, protocol: str, peers: Sequence[Peer]) -> Mapping[str, bytes]:
        told = {peer.member_id: msgspec.json.decode(peer.metadata, type=_Metadata) for peer in peers}
        shares = share_out({member: each.held for member, each in told.items()}, self._worker.state.configs.connectors)
        total = sum(map(len, shares.parts.values()))
        return {
            member: msgspec.json.encode(_Part(self._url, part, shares.unfinished, total > len(part)))
            for member, part in shares.parts.items()
        }


async def _seen(url: str) -> Seen:
    place = urlsplit(url)
    try:
        async with asyncio.timeout(WATCH_S):
            _, writer = await asyncio.open_connection(place.hostname, place.port)
    except ConnectionRefusedError:
        return Seen.REFUSES
    except (OSError, TimeoutError, ValueError):
        return Seen.SILENT
    writer.close()
    return Seen.LISTENS
