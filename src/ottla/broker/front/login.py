"""The door of a listener on which clients log in: it stands before the session until they have.

A `LoginDoor` receives the connection's frames in place of the session and lets `security.sasl.conversation` judge them.
With a login that does not end it hands the connection over for good, so a session pays nothing for having been behind a
door. With one that ends (KIP-368) it stays, looks at the time of each request, and begins the conversation again when a
handshake comes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from ottla.broker.front.admission import Refusals
from ottla.broker.front.client import NOBODY
from ottla.broker.front.dispatch import API_VERSIONS
from ottla.broker.front.session import Refusal, Session
from ottla.model.ids import Millis
from ottla.model.ports import Clock
from ottla.net.connection import BY_LOGIN, Line, Receiver
from ottla.net.foreign import is_http, is_tls
from ottla.runtime.tasks import Tasks
from ottla.security.sasl.conversation import (
    HANDSHAKE_KEY,
    Answer,
    Close,
    Conversation,
    Fail,
    Greet,
    LoggedIn,
    Login,
    Offers,
    Step,
    Wait,
)
from ottla.security.sasl.outcomes import Need

logger = logging.getLogger(__name__)

_unpack_head: Final = Struct(">hh").unpack_from
_SAYS_SOFTWARE: Final = 3
_BETWEEN_RELOGINS: Final = Millis(1_000)
"""KIP-368: a client that logs in more often is told so by 34."""


class Door(Line, Protocol):
    """A connection that can change hands."""

    def hand_over(self, receiver: Receiver, max_frame: int) -> None: ...

    def pause_reading(self, reason: int = ...) -> None: ...

    def resume_reading(self, reason: int = ...) -> None: ...


class LoginOptions(NamedTuple):
    failure_delay: Millis
    timeout: Millis
    max_frame_bytes: int
    """Of a stranger."""


class LoginCounts:
    __slots__ = ("expired", "failed", "reauthenticated", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.reauthenticated = 0
        self.expired = 0
        """Connections closed because their client did not log in again in time."""


class Logins:
    """Of one listener: what it offers, and how many came of it."""

    __slots__ = ("_clock", "_failures", "_loop", "_tasks", "counts", "get", "offers", "options")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        offers: Offers,
        options: LoginOptions,
        get: Callable[[str, Need], Awaitable[None]],
    ) -> None:
        """`get` is asked with a mechanism for what its exchange needs, and never fails: what is not there then is
        missed by the exchange."""
        self._loop = loop
        self._clock = clock
        self._failures = Refusals()
        self._tasks = Tasks(loop)
        self.offers = offers
        """Replaced as a whole when settings change; logins under way keep what they began with."""
        self.options = options
        self.get = get
        self.counts = LoginCounts()

    def door(self, session: Session, connection: Door, max_frame: int) -> "LoginDoor":
        """`max_frame`: of who is logged in."""
        return LoginDoor(self, session, connection, max_frame)

    @property
    def now(self) -> Millis:
        return self._clock.monotonic()

    @property
    def wall(self) -> Millis:
        return self._clock.wall()

    def later(self, delay: Millis, do: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay / 1000, do)

    def start(self, work: Coroutine[Any, Any, None], give_up: Callable[[], None]) -> None:
        """What a login waits for. If it fails that is told in the log, and the client is not left waiting."""

        def ended(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and task.exception() is not None:
                give_up()

        self._tasks.start(work, "a login").add_done_callback(ended)

    def close(self) -> None:
        self._tasks.cancel()

    def failed(self, who: str, why: str) -> None:
        """One line for many: whoever guesses passwords must not fill the log."""
        self.counts.failed += 1
        line = self._failures.said(f"a login failed: {who}: {why}", self.now)
        if line is not None:
            logger.warning("%s", line)


class LoginDoor:
    """The receiver of one connection."""

    __slots__ = (
        "_connection",
        "_conversation",
        "_last_relogin",
        "_login",
        "_logins",
        "_max_frame",
        "_session",
        "_timer",
    )

    def __init__(self, logins: Logins, session: Session, connection: Door, max_frame: int) -> None:
        self._logins = logins
        self._session = session
        self._connection = connection
        self._max_frame = max_frame
        self._conversation: Conversation | None = Conversation(logins.offers)
        """None: logged in."""
        self._login: Login | None = None
        self._last_relogin: Millis | None = None
        self._timer: asyncio.TimerHandle | None = logins.later(logins.options.timeout, self._too_slow)

    # ---- what the connection says

    def frame_received(self, frame: memoryview) -> None:
        if self._conversation is None:
            self._pass(frame)
        else:
            self._do(self._conversation.received(bytes(frame), self._logins.now, self._logins.wall), frame)

    def frame_refused(self, size: int, limit: int) -> None:
        self._session.frame_refused(size, limit)
        if self._login is None and not is_http(size) and not is_tls(size):
            self._session.refused = Refusal(
                f"closing {self._session.client.host}: before its login it announced a request of {size} bytes; "
                f"sasl.server.max.receive.size allows {limit}"
            )

    def output_drained(self) -> None:
        self._session.output_drained()

    def connection_lost(self) -> None:
        self._conversation = None
        self._stop_timer()
        self._session.connection_lost()

    # ---- a login that ends

    def _pass(self, frame: memoryview) -> None:
        """A request of a session with an end."""
        login, now = self._login, self._logins.now
        assert login is not None and login.ends is not None
        key, _ = _unpack_head(frame) if len(frame) >= 4 else (-1, 0)
        if key == HANDSHAKE_KEY and self._may_log_in_again(now):
            self._last_relogin = now
            self._begin_again(login, bytes(frame))
        elif now >= login.ends:
            self._logins.counts.expired += 1
            logger.info("closing %s: its login as %s has ended", self._session.client.host, login.name)
            self._connection.close()
        else:
            self._session.frame_received(frame)

    def _may_log_in_again(self, now: Millis) -> bool:
        return self._last_relogin is None or now - self._last_relogin >= _BETWEEN_RELOGINS

    def _begin_again(self, login: Login, handshake: bytes) -> None:
        """Answers keep their order: what was asked before is answered before, under the login that there was."""
        self._conversation = Conversation(self._logins.offers, login)
        unanswered = self._session.unanswered()
        if not unanswered:
            self._do(self._conversation.received(handshake, self._logins.now, self._logins.wall), memoryview(handshake))
            return
        self._connection.pause_reading(BY_LOGIN)
        self._logins.start(self._when_answered(unanswered, handshake), self._connection.close)

    async def _when_answered(self, unanswered: "list[asyncio.Future[object]]", handshake: bytes) -> None:
        await asyncio.wait(unanswered)
        if self._conversation is not None:
            self._go_on(self._conversation.received(handshake, self._logins.now, self._logins.wall))

    def _go_on(self, step: Step) -> None:
        """After a pause: with the step that it was for."""
        self._do(step, memoryview(b""))
        if isinstance(step, Answer | LoggedIn):
            self._connection.resume_reading(BY_LOGIN)

    # ---- what the conversation wants

    def _do(self, step: Step, frame: memoryview) -> None:
        match step:
            case Greet():
                self._greet(frame)
            case Answer(answer):
                self._connection.send_bytes(answer)
            case Wait(need):
                self._connection.pause_reading(BY_LOGIN)
                self._logins.start(self._fetch(need), self._connection.close)
            case LoggedIn(answer, login):
                self._logged_in(answer, login)
            case Fail(answer, why):
                self._fail(answer, why)
            case Close(why):
                self._close(why)

    def _greet(self, frame: memoryview) -> None:
        session, conversation = self._session, self._conversation
        assert conversation is not None
        _, version = _unpack_head(frame)
        session.frame_received(frame)
        route = session.routes.get(API_VERSIONS)
        assert route is not None
        known = route.min_version <= version <= route.max_version
        conversation.greeted(answered=known and (version < _SAYS_SOFTWARE or session.client.software_name != ""))

    async def _fetch(self, need: Need) -> None:
        conversation = self._conversation
        assert conversation is not None
        await self._logins.get(conversation.mechanism, need)
        if self._conversation is conversation:  # else the connection was lost meanwhile
            self._go_on(conversation.resumed(self._logins.now, self._logins.wall))

    def _logged_in(self, answer: bytes, login: Login) -> None:
        session, counts = self._session, self._logins.counts
        self._connection.send_bytes(answer)
        self._conversation = None
        self._stop_timer()
        again = self._login is not None
        counts.reauthenticated += again
        counts.succeeded += not again
        self._login = login
        principal = f"User:{login.name}"
        if session.client.principal != principal or session.client.by_token != login.by_token:
            session.client = session.client.logged_in(
                principal, session.services.authorizer, session.underway, by_token=login.by_token
            )
        logger.debug("%s is %s, by %s", session.client.host, principal, login.mechanism)
        session.services.authorizer.logged_in(principal, session.client, login.mechanism)
        if not again or login.ends is None:
            self._connection.hand_over(session if login.ends is None else self, self._max_frame)

    def _fail(self, answer: bytes | None, why: str) -> None:
        client, conversation = self._session.client, self._conversation
        self._logins.failed(client.host, why)
        mechanism = "" if conversation is None else conversation.mechanism
        self._session.services.authorizer.logged_in(NOBODY, client, mechanism, why)
        self._conversation = None
        self._connection.pause_reading(BY_LOGIN)
        self._stop_timer()
        self._timer = self._logins.later(self._logins.options.failure_delay, lambda: self._hang_up(answer))

    def _hang_up(self, answer: bytes | None) -> None:
        if answer is not None:
            self._connection.send_bytes(answer)
        self._connection.close()

    def _close(self, why: str) -> None:
        self._logins.failed(self._session.client.host, why)
        self._connection.close()

    def _too_slow(self) -> None:
        self._timer = None
        self._close(f"it did not log in within {self._logins.options.timeout} ms (ottla.authentication.timeout.ms)")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
