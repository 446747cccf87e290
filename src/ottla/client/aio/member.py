"""A member of a group on the loop: runs the core of `membership` and calls its owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol

from ottla.client.aio.cluster import Cluster
from ottla.client.errors import ClientError, ConnectionLost, KafkaError, TimedOut, Unreachable, check
from ottla.client.membership import (
    Assigned,
    Assignor,
    Effect,
    Effects,
    Failed,
    Left,
    Lost,
    MemberSettings,
    Membership,
    Prepare,
    Send,
    State,
    leave_request,
)
from ottla.client.routing import GROUP, ask_coordinator
from ottla.client.steps import ANY, Ask
from ottla.model.errors import Errors
from ottla.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

REMOVE_PATIENCE_S: Final = 5.0


async def remove(cluster: Cluster, group: str, member_id: str) -> None:
    """Takes another member out of a group, as its own LeaveGroup would; one that is not in it is no error. Raises
    ClientError."""
    steps = ask_coordinator(
        cluster.routing,
        (GROUP, group),
        Ask(ANY, LeaveGroupRequest, partial(leave_request, group, member_id), LeaveGroupResponse),
        LeaveGroupResponse,
        timeout_s=REMOVE_PATIENCE_S,
        find_again=False,
    )
    answer = await cluster.run(steps)
    check(answer.error_code, f"group {group}")


class Owner(Protocol):
    """Whose member it is. The two that wait are called one after the other, never at once."""

    async def prepare(self) -> Sequence[tuple[str, bytes]]:
        """A generation is to be formed: stop what must not go on, and say what to join with, as names of protocols and
        this member's metadata, in the order of preference."""

    async def assigned(self, part: Assigned) -> None:
        """The generation is formed. `part.leads` tells whether this member leads it."""

    def lost(self) -> None:
        """What was assigned is no longer this member's, others may have it already: called at once."""


class Member:
    """`run` is the life of a member; `leave` ends it."""

    __slots__ = ("_cluster", "_core", "_errands", "_heard", "_lane", "_owner", "_running", "_tasks")

    def __init__(self, cluster: Cluster, settings: MemberSettings, assign: Assignor, owner: Owner) -> None:
        self._cluster = cluster
        self._core = Membership(settings, assign)
        self._owner = owner
        self._lane = cluster.new_lane("member")
        self._heard: asyncio.Queue[Callable[[int], Effects]] = asyncio.Queue()
        """What the core has to be told, in order."""
        self._errands: asyncio.Queue[Prepare | Assigned] = asyncio.Queue()
        """What the owner has to be told, in order."""
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> Assigned | None:
        """This member's part, if it surely has one now."""
        return self._core.held

    def rejoin(self) -> None:
        """What the owner would say in `prepare` has changed."""
        self._heard.put_nowait(self._core.rejoin)

    def leave(self) -> None:
        """`run` returns soon, at the latest after five seconds. The owner has stopped what it does before."""
        self._heard.put_nowait(self._core.leave)

    async def run(self) -> None:
        """Returns when it has left. Raises KafkaError when it cannot be in the group, and what the owner raises."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._start(self._call_owner())
                self._perform(self._core.start(self._now_ms()))
                failure: KafkaError | None = None
                while self._core.state is not State.ENDED:
                    failure = self._perform(await self._next()) or failure
                for task in list(self._running):
                    task.cancel()
        except BaseExceptionGroup as raised:
            raise raised.exceptions[0] from None
        finally:
            await self._cluster.close_lane(self._lane)
        if failure is not None:
            raise failure

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._tasks is not None
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _next(self) -> Effects:
        """What comes of the next answer, wish or moment."""
        due_ms = self._core.next_tick_ms()
        wait_s = None if due_ms is None else max(due_ms - self._now_ms(), 0) / 1000
        try:
            async with asyncio.timeout(wait_s):
                tell = await self._heard.get()
        except TimeoutError:
            return self._core.tick(self._now_ms())
        return tell(self._now_ms())

    def _perform(self, effects: Sequence[Effect]) -> KafkaError | None:
        failure: KafkaError | None = None
        for effect in effects:
            match effect:
                case Send():
                    self._start(self._send(effect))
                case Prepare() | Assigned():
                    self._errands.put_nowait(effect)
                case Lost():
                    self._owner.lost()
                case Failed(error):
                    failure = error
                case Left():
                    pass
        return failure

    async def _call_owner(self) -> None:
        while True:
            errand = await self._errands.get()
            if isinstance(errand, Prepare):
                protocols = tuple(await self._owner.prepare())
                self._tell(partial(self._core.ready, errand.number, protocols))
            elif errand == self._core.held:  # else it was lost while the owner was busy
                await self._owner.assigned(errand)

    async def _send(self, send: Send) -> None:
        # A join may wait for long, and a farewell must not wait behind it.
        lane = "" if send.kind is LeaveGroupRequest else self._lane
        ask = Ask(ANY, send.kind, send.make, send.response, lane=lane)
        number = send.number
        try:
            answer = await self._cluster.run(
                ask_coordinator(
                    self._cluster.routing,
                    (GROUP, self._core.settings.group),
                    ask,
                    send.response,
                    timeout_s=send.patience_ms / 1000,
                    find_again=send.find_again,
                )
            )
        except (ConnectionLost, Unreachable, TimedOut):
            self._tell(lambda now_ms: self._core.unanswered(number, now_ms))
        except KafkaError as error:
            refusal = error
            self._tell(lambda _: self._core.refused(refusal))
        except ClientError as error:
            refusal = KafkaError(Errors.UNSUPPORTED_VERSION, f"group {self._core.settings.group}", str(error))
            self._tell(lambda _: self._core.refused(refusal))
        else:
            self._tell(lambda now_ms: self._core.answered(number, answer, now_ms))

    def _tell(self, what: Callable[[int], Effects]) -> None:
        self._heard.put_nowait(what)

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)
