"""What a client does, without doing it: an operation yields what it wants done, and is told what came of it.

Written once, run by two faces: the blocking one waits in the socket, the asyncio one in the loop. An operation knows
neither; the time comes with every answer. `@operation` makes a function of a generator: called with a face it runs, and
gives its result, or, with the asyncio face, something to await.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, overload

from ottla.client.errors import ClientError, TimedOut
from ottla.protocol.codec import Message

if TYPE_CHECKING:
    from ottla.client.routing import Routing

ANY: Final = -1
"""In place of a broker's id: whichever answers."""
NEWEST: Final = 0x7FFF
REQUEST_TIMEOUT_S: Final = 15.0
"""A broker that hangs must not use up the time of the others."""
FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0

P = ParamSpec("P")
R = TypeVar("R", bound=Message)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


# Plain classes: each field of a NamedTuple is compiled at import, which every command of the CLI would pay for.


class Ask:
    """One request to one broker."""

    __slots__ = ("answered", "at_most", "broker", "kind", "lane", "make", "response")

    def __init__(
        self,
        broker: int,
        kind: type[Message],
        make: Callable[[int], Message],
        response: type[Message],
        at_most: int = NEWEST,
        *,
        lane: str = "",
        answered: bool = True,
    ) -> None:
        self.broker = broker
        self.kind = kind
        self.make = make
        """Of the version that was agreed on: what a request names (topics or their ids) depends on it."""
        self.response = response
        self.at_most = at_most
        self.lane = lane
        """Brokers answer a connection's requests in order: whoever waits long (fetch, join) has one of its own."""
        self.answered = answered
        """False for a Produce with acks=0, the one request without an answer."""

    def of(self, broker: int) -> Ask:
        return Ask(broker, self.kind, self.make, self.response, self.at_most, lane=self.lane, answered=self.answered)


class Exchange:
    """Ask all, at once where possible; told are all answers, in this order."""

    __slots__ = ("asks", "until_s")

    def __init__(self, asks: tuple[Ask, ...], until_s: float) -> None:
        self.asks = asks
        self.until_s = until_s


class Pause:
    __slots__ = ("until_s",)

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s


class Heard:
    __slots__ = ("answers", "now_s")

    def __init__(self, now_s: float, answers: tuple[Message | ClientError, ...] = ()) -> None:
        self.now_s = now_s
        self.answers = answers
        """For each Ask its response, or why there is none."""


Steps = Generator[Exchange | Pause, Heard, T]


class Attempts:
    """One operation in time: its deadline, and pauses between attempts that grow."""

    __slots__ = ("_pause_s", "end_s", "now_s", "timeout_s", "what")

    def __init__(self, what: str, timeout_s: float, now_s: float) -> None:
        self.what = what
        self.timeout_s = timeout_s
        self.now_s = now_s
        self.end_s = now_s + timeout_s
        self._pause_s = FIRST_PAUSE_S

    def exchange(self, *asks: Ask, at_most_s: float = REQUEST_TIMEOUT_S) -> Steps[tuple[Message | ClientError, ...]]:
        heard = yield Exchange(asks, min(self.end_s, self.now_s + at_most_s))
        self.now_s = heard.now_s
        assert len(heard.answers) == len(asks)
        return heard.answers

    def ask(self, ask: Ask, response: type[R]) -> Steps[R]:
        """Raises what stands in place of the answer."""
        (answer,) = yield from self.exchange(ask)
        if isinstance(answer, ClientError):
            raise answer
        assert isinstance(answer, response)
        return answer

    def again(self, last: Exception) -> Steps[None]:
        """Waits before the next attempt; raises TimedOut when no time is left for one."""
        self.now_s = (yield Pause(0.0)).now_s  # others may have let time pass since
        if self.end_s - self.now_s <= self._pause_s:
            raise TimedOut(self.what, self.timeout_s, last) from last
        self.now_s = (yield Pause(self.now_s + self._pause_s)).now_s
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    @property
    def over(self) -> bool:
        return self.now_s >= self.end_s


def begin(what: str, timeout_s: float) -> Steps[Attempts]:
    heard = yield Pause(0.0)  # over at once: it tells the time
    return Attempts(what, timeout_s, heard.now_s)


# Faces.

if TYPE_CHECKING:

    class Blocking(Protocol):
        @property
        def routing(self) -> Routing: ...
        def run(self, steps: Steps[T], /) -> T: ...

    class Asynchronous(Protocol):
        @property
        def routing(self) -> Routing: ...
        def run(self, steps: Steps[T], /) -> Coroutine[Any, Any, T]: ...


class Operation(Generic[P, T]):
    """`operation(face, ...)` runs it, `operation.steps(routing, ...)` is for other operations."""

    __slots__ = ("steps",)

    def __init__(self, steps: Callable[Concatenate[Routing, P], Steps[T]]) -> None:
        self.steps = steps

    @overload
    def __call__(self, face: Blocking, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(self, face: Asynchronous, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]: ...
    def __call__(self, face: Blocking | Asynchronous, *args: P.args, **kwargs: P.kwargs) -> T | Coroutine[Any, Any, T]:
        steps = self.steps(face.routing, *args, **kwargs)
        return face.run(steps)


operation = Operation
