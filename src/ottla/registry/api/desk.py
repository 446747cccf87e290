"""What all resources share: the machine's answers, writes that go to whoever leads, pages of lists."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl

from ottla.http.answers import Answer
from ottla.http.asking import NoAnswer, Reply, ask
from ottla.http.call import Call
from ottla.http.problems import Problem
from ottla.registry import audit
from ottla.registry.api.bodies import SchemaTags
from ottla.registry.api.replies import tags_of
from ottla.registry.journal.reader import Leader
from ottla.registry.machine import refusals
from ottla.registry.machine.commands import Command, Sent
from ottla.registry.machine.lookups import everybody
from ottla.registry.machine.machine import Machine
from ottla.registry.machine.names import normal
from ottla.registry.machine.refusals import Refusal
from ottla.registry.machine.versions import SchemaVersion
from ottla.registry.runner import LARGE_TEXT, NotLeading, Runner
from ottla.registry.settings import RegistrySettings

if TYPE_CHECKING:
    from ssl import SSLContext

    from ottla.registry.doors.subject_rights import SubjectRights

logger = logging.getLogger(__name__)

T = TypeVar("T")

FORWARDED: Final = "x-forward"
"""Set on a write that was passed on: it is not passed on again."""
_PASSED_ON: Final = ("content-type", "accept", "authorization", "x-request-id", "confluent-accept-unknown-properties")
_ATTEMPTS: Final = 5
_UNKNOWN_LEADER: Final = 50004
_PROBE_S: Final = 1.0
"""A leader that takes longer over a write is asked whether it is there at all."""
_MOST: Final = (1 << 31) - 1


class Desk:
    __slots__ = ("_settings", "_tls", "_url", "rights", "runner")

    def __init__(
        self,
        runner: Runner,
        settings: RegistrySettings,
        url: str,
        tls: Callable[[], SSLContext] | None = None,
        rights: SubjectRights | None = None,
    ) -> None:
        """`tls` gives the context by which other registries are reached; None: as the system has it. Without `rights`
        everybody who is let in may do everything."""
        self.runner = runner
        self.rights = rights
        self._settings = settings
        self._url = url
        self._tls = tls

    @property
    def machine(self) -> Machine:
        return self.runner.machine

    # Names and pages.

    def subject(self, call: Call) -> str:
        """Of the path; an alias is replaced by what it stands for."""
        return self.machine.meant(normal(call.path["subject"]))

    def hinted(self, call: Call) -> str:
        return self.machine.meant(normal(call.query.get("subject", "")))

    def sees(self, call: Call) -> Callable[[str], bool]:
        """Which subjects the caller may know of."""
        return everybody if self.rights is None else self.rights.sees(call.caller)

    def page(self, call: Call, found: Sequence[T], *, family: str = "subject") -> Sequence[T]:
        """`offset` and `limit`; a limit that is none, or too high, is the usual one."""
        offset = call.number("offset", 0, least=0, most=_MOST)
        asked = call.number("limit", -1, least=-_MOST, most=_MOST)
        most = self._settings[f"{family}.search.max.limit"]
        limit = asked if 0 < asked <= most else self._settings[f"{family}.search.default.limit"]
        return found[offset : offset + limit]

    # Questions.

    async def look(self, question: Callable[[Machine], T], sent: Sent | SchemaVersion) -> T:
        """A question about a schema."""
        return await self.runner.look(question, large=len(sent.text) > LARGE_TEXT)

    async def text(self, version: SchemaVersion, format: str | None) -> str | None:
        """In another format; None: as it is."""
        if not format:
            return None
        return await self.look(lambda machine: machine.parser.of_version(version).formatted(format), version)

    async def tags(self, version: SchemaVersion, wanted: Sequence[str]) -> list[SchemaTags] | None:
        """Of what carries one of the wanted tags; `*` means any."""
        return await self.look(lambda machine: tags_of(machine.parser.of_version(version), wanted), version)

    # Writes.

    async def write(self, call: Call, command: Command, reply: Callable[[Any], Any]) -> Any:
        """What `reply` makes of the machine's reply; or the answer of the registry that leads. Raises Refusal."""
        try:
            found = await self._written(call, command)
        except Refusal as refusal:
            audit.refused(call.caller, command, refusal)
            raise
        if isinstance(found, Answer):
            audit.passed_on(call.caller, command, self.runner.leader or "", found.status)
            return found
        audit.done(call.caller, command, found)
        return reply(found)

    async def _written(self, call: Call, command: Command) -> Any:
        """The machine's reply, or an Answer: that of the registry that leads."""
        for _ in range(_ATTEMPTS):
            try:
                return await self.runner.submit(command)
            except NotLeading as refused:
                if refused.unheard_of:
                    await self.runner.catch_up()
                leader = self.runner.follower.leader
            mine = leader is None or leader.url == self._url
            if FORWARDED in call.headers and not (leader is not None and mine):
                break
            if mine:
                await self._take_lead(leader)
                continue
            assert leader is not None
            answer = await self._passed_on(leader, call)
            if answer is not None:
                return answer
        raise refusals.unknown_leader("The request failed since the leader is unknown")

    async def _take_lead(self, instead_of: Leader | None) -> None:
        if not self._settings["leader.eligibility"]:
            raise refusals.unknown_leader("No registry leads, and this one may not (leader.eligibility=false)")
        await self.runner.take_lead(instead_of)

    async def _passed_on(self, leader: Leader, call: Call) -> Answer | None:
        """None: it does not lead, or is not there any more; by now another one does."""
        try:
            reply = await self._asked(leader.url, call)
        except NoAnswer as error:
            logger.warning("a write could not be passed on: %s", error)
            await self._replace(leader)
            if error.sent and call.method not in ("POST", "PUT"):
                # A schema or a setting can be sent twice; of a second delete nobody knows what the first one did.
                raise refusals.forwarding_failed(f"The leader was lost in the midst of the request: {error}") from None
            return None
        if reply.status == 500 and b'"error_code":%d' % _UNKNOWN_LEADER in reply.body:
            await self._replace(leader)
            return None
        if reply.status < 300:
            await self.runner.catch_up()  # a write can be read where it was sent
        return Answer(reply.body, reply.status, reply.headers.get("content-type"))

    async def _replace(self, leader: Leader) -> None:
        await self.runner.catch_up()
        if self.runner.follower.leader == leader:
            await self._take_lead(leader)

    async def _asked(self, url: str, call: Call) -> Reply:
        headers = {name: call.headers[name] for name in _PASSED_ON if name in call.headers}
        asking = asyncio.ensure_future(
            ask(
                url,
                call.method,
                call.url,
                {**headers, FORWARDED: "true"},
                call.raw_body,
                connect_s=self._settings.seconds("leader.connect.timeout.ms"),
                answer_s=self._settings.seconds("leader.read.timeout.ms"),
                tls=self._tls() if self._tls is not None else None,
            )
        )
        try:
            while True:
                done, _ = await asyncio.wait((asking,), timeout=_PROBE_S)
                if done:
                    return asking.result()
                await self.check_alive(url)
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError, NoAnswer):
                await asking

    async def check_alive(self, url: str) -> None:
        """Raises NoAnswer if nobody answers there in time: it may be stopped, or hang."""
        try:
            tls = self._tls() if self._tls is not None else None
            await ask(url, "GET", "/", {}, connect_s=_PROBE_S, answer_s=_PROBE_S, tls=tls)
        except NoAnswer as error:
            raise NoAnswer(str(error), sent=True) from None


def answered(answer: Callable[[Call], Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
    """A coroutine of a route: a refusal becomes an error body."""

    async def route(call: Call) -> Any:
        try:
            return await answer(call)
        except Refusal as refusal:
            raise Problem(refusal.status, refusal.message, refusal.code) from None

    return route


def all_of(call: Call, name: str) -> list[str]:
    """All values of a query parameter that may be repeated."""
    _, _, query = call.url.partition("?")
    return [value for key, value in parse_qsl(query, keep_blank_values=True) if key == name]


def path_number(call: Call, name: str) -> int:
    """A number in the path: anything else is no resource at all."""
    text = call.path[name]
    if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 11 and abs(int(text)) <= _MOST + 1:
        return int(text)
    raise Problem(404, f"{text} is no {name}: a number is expected.")
