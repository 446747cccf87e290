"""What all families share: connectors by name, configs judged, commands that go to whoever leads.

A request that only the leader may decide is passed on as it came, signed with the session key of the cluster (KIP-507)
and marked with Java's `forward=false`, so that it is passed on once.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from ottla.client.errors import ClientError
from ottla.connect.configs import Connector
from ottla.connect.definitions import Texts, misspelt
from ottla.connect.herder import Command, Done, Refusal, Reply, RestartPlan
from ottla.connect.journal import TooLarge
from ottla.connect.settings import ConnectSettings
from ottla.connect.validation import Judge, NotJudged, Verdict
from ottla.connect.worker import ALGORITHM, NotLeading, Worker
from ottla.http.answers import Answer
from ottla.http.asking import NoAnswer, ask
from ottla.http.call import Call
from ottla.http.problems import Problem

logger = logging.getLogger(__name__)

SIGNATURE: Final = "x-connect-authorization"
SIGNATURE_ALGORITHM: Final = "x-connect-request-signature-algorithm"
_PASSED_ON: Final = ("content-type", "accept", "authorization")
_NO_LEADER: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)
_CONFLICT: Final = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
_WAIT_S: Final = 5.0
"""How long a request waits for a leader to be known: a group forms its next generation well within."""
_GLANCE_S: Final = 0.05
_CONNECT_S: Final = 3.0


class Passed(Exception):
    """The leader has answered: this is its answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("answered by the leader")
        self.answer = answer


class Desk:
    __slots__ = ("_tls", "_url", "judge", "settings", "worker")

    def __init__(
        self,
        worker: Worker,
        judge: Judge,
        settings: ConnectSettings,
        url: str,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`tls`: how other workers are asked that speak https, as of now."""
        self._tls = tls
        self.worker = worker
        self.judge = judge
        self.settings = settings
        self._url = url

    @property
    def scheme(self) -> str:
        """That it speaks to callers."""
        return urlsplit(self._url).scheme

    # Connectors.

    def find(self, name: str) -> Connector | None:
        return self.worker.state.configs.connectors.get(name)

    def get(self, name: str) -> Connector:
        """Raises Problem."""
        found = self.find(name)
        if found is None:
            raise Problem(404, f"Connector {name} not found")
        return found

    def kind(self, config: Mapping[str, str | None]) -> str:
        return self.worker.kind_of(config)

    async def judged(self, config: Texts) -> Verdict:
        """In a thread: plug-ins are loaded, and may do what they like. Raises Problem."""
        try:
            return await asyncio.to_thread(self.judge.judge, config)
        except NotJudged as error:
            raise Problem(400, str(error)) from None

    async def check(self, config: Texts) -> None:
        """Raises Problem with all that is wrong."""
        found = await self.judged(config)
        if found.error_count:
            raise Problem(400, found.complaint())
        for name, meant in misspelt(config, (value.name for _, value in found.configs)).items():
            logger.warning("connector %s: %s is no key of it; did you mean %s?", config.get("name"), name, meant)
        if found.unheeded:
            logger.warning("connector %s: these keys change nothing: %s", config.get("name"), ", ".join(found.unheeded))

    # Commands.

    async def submit(self, call: Call, command: Command) -> Done | RestartPlan:
        """Raises Problem; and Passed where the leader, which is another worker, has answered."""
        await self.lead_or_pass(call)
        try:
            reply: Reply = await self.worker.submit(command)
        except NotLeading:
            raise Problem(409, _CONFLICT) from None
        except TooLarge as error:
            raise Problem(413, f"The config topic does not take a connector of this size: {error}") from None
        except ClientError as error:
            raise Problem(
                500,
                "Failed to write to config topic; this may be due to a transient error and the request can be safely "
                f"retried: {error}",
            ) from None
        if isinstance(reply, Refusal):
            raise Problem(reply.status, reply.message)
        return reply

    async def lead_or_pass(self, call: Call) -> None:
        """Returns if this worker leads. Raises Problem, Passed."""
        self._check_signature(call)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _WAIT_S
        while not (self.worker.leads and self.worker.ready):
            lead = self.worker.lead
            if lead.url is not None and lead.url != self._url and not lead.mine:
                raise Passed(await self._passed(call, lead.url))
            if loop.time() > deadline:
                raise Problem(409, _NO_LEADER)
            await asyncio.sleep(_GLANCE_S)

    async def _passed(self, call: Call, leader: str) -> Answer:
        if call.query.get("forward", "").lower() == "false":
            raise Problem(409, _CONFLICT)
        headers = {name: call.headers[name] for name in _PASSED_ON if name in call.headers}
        key = self.worker.state.configs.session_key
        if key is not None:
            headers |= {
                SIGNATURE: _signed(key.key, call.method, call.url, call.raw_body),
                SIGNATURE_ALGORITHM: ALGORITHM,
            }
        target = call.url + ("&" if "?" in call.url else "?") + "forward=false"
        timeout_s = self.settings.seconds("connect.request.timeout.ms")
        try:
            reply = await ask(
                leader,
                call.method,
                target,
                headers,
                call.raw_body,
                connect_s=_CONNECT_S,
                answer_s=timeout_s,
                tls=None if self._tls is None else self._tls(),
            )
        except NoAnswer as error:
            raise Problem(500, f"IO Error trying to forward REST request: {error}") from None
        found = urlsplit(reply.headers.get("location", "")).path
        kept = {"location": f"{base_of(call, self.scheme)}{found}"} if found else {}
        return Answer(reply.body, reply.status, reply.headers.get("content-type"), kept)

    def _check_signature(self, call: Call) -> None:
        """A request that says it comes from another worker has to prove it."""
        said, key = call.headers.get(SIGNATURE), self.worker.state.configs.session_key
        if said is None:
            return
        if call.headers.get(SIGNATURE_ALGORITHM, "").lower() != ALGORITHM.lower():
            raise Problem(
                400, f"This worker does not support the signing algorithm of the request: it uses {ALGORITHM}."
            )
        if key is None:
            raise Problem(
                503,
                "This worker is still starting up and has not been able to read a session key from the config topic "
                "yet",
            )
        sent = call.url.removesuffix("&forward=false").removesuffix("?forward=false")
        if not hmac.compare_digest(said, _signed(key.key, call.method, sent, call.raw_body)):
            raise Problem(403, "Internal request contained invalid signature.")

    def require_signature(self, call: Call) -> None:
        """For what workers ask of each other only. Java's sign the body alone. Raises Problem."""
        key = self.worker.state.configs.session_key
        said = call.headers.get(SIGNATURE)
        if said is None:
            raise Problem(400, "Internal request missing required signature")
        expected = None if key is None else _mac(key.key, call.raw_body)
        if expected is None or not hmac.compare_digest(said, expected):
            raise Problem(403, "Internal request contained invalid signature.")


def base_of(call: Call, scheme: str) -> str:
    """By which the caller reached this worker."""
    host = call.headers.get("host", "")
    return f"{scheme}://{host}" if host else ""


def _signed(key: bytes, method: str, url: str, body: bytes) -> str:
    return _mac(key, f"{method} {url}\n".encode() + body)


def _mac(key: bytes, text: bytes) -> str:
    return base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


async def passing(answering: Any) -> Any:
    """What a coroutine answers, or the leader in its place."""
    try:
        return await answering
    except Passed as passed:
        return passed.answer
