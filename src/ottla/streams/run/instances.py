"""Several processes that run one application: one is active, the others stand by and take over when it is gone.

They are members of a group of their own, `<application.id>-ottla-instances`. Whoever leads it lets the one go on that
is active, or the one that came first begin. A member that hears nothing from the brokers goes on meanwhile: what it
writes is guarded by its transactions, and whoever became active in its place has fenced it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client import groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.aio.cluster import Cluster
from ottla.client.aio.member import Member
from ottla.client.blocking.cluster import Cluster as BlockingCluster
from ottla.client.errors import ClientError, KafkaError
from ottla.client.membership import Assigned, MemberSettings, Peer
from ottla.client.reach import Reach
from ottla.model.errors import Errors
from ottla.pipelines.job import CannotStart

SUFFIX: Final = "-ottla-instances"
PROTOCOL: Final = "active-standby"
SESSION_MS: Final = 6_000
"""The least that a broker takes (group.min.session.timeout.ms): so soon a process that was killed is missed."""
HEARTBEAT_MS: Final = 1_500
REBALANCE_MS: Final = 10_000

logger = logging.getLogger(__name__)


class About(NamedTuple):
    """What an instance tells of itself."""

    host: str
    pid: int
    came_ms: int
    active: bool = False

    def encode(self) -> bytes:
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, data: bytes) -> About:
        """Raises ValueError for what no instance says."""
        told = json.loads(data)
        return cls(str(told["host"]), int(told["pid"]), int(told["came_ms"]), bool(told["active"]))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def choose(peers: Sequence[Peer]) -> str:
    """The member id of who is to be active: who is, and of two the one that became so last; else who came first."""
    known = sorted(((About.decode(peer.metadata), peer.member_id) for peer in peers), key=lambda each: each[0].came_ms)
    active = [member_id for about, member_id in known if about.active]
    return active[-1] if active else known[0][1]


def assign(_protocol: str, peers: Sequence[Peer]) -> Mapping[str, bytes]:
    """Everybody is told who is active."""
    chosen = choose(peers)
    (about,) = (peer.metadata for peer in peers if peer.member_id == chosen)
    told = json.dumps({"active": chosen, "about": about.decode()}).encode()
    return {peer.member_id: told for peer in peers}


class Instance:
    """This process among the instances: `with` it, and `wait` to be the active one."""

    def __init__(self, reach: Reach, application_id: str) -> None:
        self._reach = reach
        self._group = f"{application_id}{SUFFIX}"
        self._about = About(socket.gethostname(), os.getpid(), time.time_ns() // 1_000_000)
        self._told = threading.Condition()
        self._active: About | None = None
        self._mine = False
        self._superseded = False
        self._failure: ClientError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._member: Member | None = None
        self._thread = threading.Thread(target=self._live, name="instance", daemon=True)

    def __enter__(self) -> Instance:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        loop, member = self._loop, self._member
        if loop is not None and member is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(member.leave)
            self._thread.join(timeout=6.0)

    def wait(self, timeout_s: float) -> bool:
        """Whether this is the active one. Raises ClientError when it cannot be in the group."""
        with self._told:
            self._told.wait_for(lambda: self._mine or self._failure is not None, timeout_s)
            if self._failure is not None:
                raise self._failure
            return self._mine

    @property
    def active(self) -> About | None:
        """Who is, if that is known and somebody else."""
        with self._told:
            return None if self._mine else self._active

    @property
    def superseded(self) -> bool:
        """It was the active one, and another has taken its place."""
        with self._told:
            return self._superseded

    # In its own thread.

    def _live(self) -> None:
        try:
            asyncio.run(self._run())
        except ClientError as error:
            with self._told:
                self._failure = error
                self._told.notify_all()

    async def _run(self) -> None:
        settings = MemberSettings(
            self._group,
            "ottla-streams",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        servers, door = parse_bootstrap(self._reach.servers), self._reach.security()
        async with Cluster(servers, client_id=self._group, security=door) as cluster:
            self._loop = asyncio.get_running_loop()
            self._member = Member(cluster, settings, assign, self)
            await self._member.run()

    async def prepare(self) -> Sequence[tuple[str, bytes]]:
        with self._told:
            return [(PROTOCOL, self._about._replace(active=self._mine).encode())]

    async def assigned(self, part: Assigned) -> None:
        told: dict[str, Any] = json.loads(part.assignment)
        with self._told:
            before, self._mine = self._mine, told["active"] == part.member_id
            self._active = About.decode(told["about"].encode())
            self._superseded = before and not self._mine
            if self._mine and not before:
                self._about = self._about._replace(came_ms=time.time_ns() // 1_000_000)
            self._told.notify_all()

    def lost(self) -> None:
        """The brokers are away, or took this process for dead: the next generation tells."""


class Listed(NamedTuple):
    about: About
    active: bool


def instances_of(cluster: BlockingCluster, application_id: str) -> list[Listed]:
    """Those that the brokers know, the active one first."""
    try:
        members = groups.members_of(cluster, f"{application_id}{SUFFIX}")
    except KafkaError as error:
        # Who may not look at the group runs without knowing of others, as one that may not join it does.
        if error.error in (Errors.GROUP_ID_NOT_FOUND, Errors.GROUP_AUTHORIZATION_FAILED):
            return []
        raise
    found = []
    for member in members:
        try:
            about = About.decode(member.metadata)
            active = json.loads(member.assignment)["active"] == member.member_id
        except (ValueError, KeyError):
            continue  # it joins at this moment
        found.append(Listed(about, active))
    return sorted(found, key=lambda each: (not each.active, each.about.came_ms))


def await_nobody(cluster: BlockingCluster, application_id: str) -> None:
    """For a run that does not take turns. One that was killed is known for the rest of its session: that is waited for.
    Raises CannotStart when an instance is active."""
    deadline = time.monotonic() + SESSION_MS / 1000 + 2
    while active := next((each.about for each in instances_of(cluster, application_id) if each.active), None):
        if time.monotonic() > deadline:
            raise CannotStart(
                f"{application_id} is active as {active}, which this run would put out of action: stop that one first"
            )
        time.sleep(0.25)
