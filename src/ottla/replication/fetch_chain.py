"""How a broker copies from one leader: a chain of fetches with one session, each begun when the last was answered.

A fetch may wait at the leader for half a second, and a partition that comes meanwhile would wait as long for its turn.
So it travels once by itself, on an express lane, until the next fetch of the chain takes it along: after an election
nothing is committed before the followers ask. Asked twice, an answer that comes second is ignored by its offset.

What to ask for each partition is looked up when its turn comes: an `Ask`, a moment before which it is not asked for
(`Later`), or None where it is not wanted at all. Who sends, and does what answers say, is `broker.replicas.fetchers`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from ottla.model.errors import Errors
from ottla.replication.fetch_session import AskingSession, Question
from ottla.replication.follower import FIRST_PAUSE_MS, Ask

Key = TypeVar("Key", bound=Hashable)

_SESSION_ERRORS: Final = (
    Errors.FETCH_SESSION_ID_NOT_FOUND,
    Errors.INVALID_FETCH_SESSION_EPOCH,
    Errors.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""The leader has forgotten the session, and nothing else is wrong: all is said again at once."""
_WITHOUT_SESSION: Final = -1


class Later(NamedTuple):
    at: int


Look = Callable[[Key, int], Ask | Later | None]
"""Of a partition, at this moment."""


class Turn(NamedTuple, Generic[Key]):
    """What to send now, and when to take the next turn even if nothing happens until then."""

    chain: Question[Key] | None = None
    express: Question[Key] | None = None
    wake_at: int | None = None


class FetchChain(Generic[Key]):
    __slots__ = ("_changed", "_express", "_fetching", "_fresh", "_later", "_pause_ms", "_session", "partitions")

    def __init__(self) -> None:
        self.partitions: dict[Key, None] = {}
        self._session: AskingSession[Key] = AskingSession()
        self._changed: dict[Key, None] = {}
        """Whose place in the session may have to change."""
        self._fresh: dict[Key, None] = {}
        """Came while a fetch was on its way."""
        self._later: dict[Key, int] = {}
        self._fetching = False
        self._express: dict[Key, Ask] = {}
        """Asked for on the express lane; empty if nothing is under way there."""
        self._pause_ms = FIRST_PAUSE_MS

    def add(self, key: Key) -> None:
        """Or something about it has changed: its epoch, or it may be asked for again."""
        self.partitions[key] = None
        self._later.pop(key, None)
        self._came(key)

    def _came(self, key: Key) -> None:
        self._changed[key] = None
        if self._fetching:
            self._fresh[key] = None

    def remove(self, key: Key) -> None:
        self.partitions.pop(key, None)
        self._fresh.pop(key, None)
        self._later.pop(key, None)
        self._changed[key] = None

    def taken(self, key: Key) -> None:
        """What was answered for it is in its log: the next question is another one."""
        self._changed[key] = None

    # ---- asking

    def turn(self, now: int, look: Look[Key]) -> Turn[Key]:
        for key in [key for key, at in self._later.items() if at <= now]:
            del self._later[key]
            self._came(key)
        chain = express = None
        if not self._fetching:
            chain = self._next(now, look)
        elif self._fresh and not self._express:
            express = self._beside(now, look)
        return Turn(chain, express, min(self._later.values(), default=None))

    def _next(self, now: int, look: Look[Key]) -> Question[Key] | None:
        session = self._session
        asks, leave = self._sorted(self.partitions if session.is_new else self._changed, now, look)
        question = session.question(asks, leave)
        self._changed.clear()
        self._fresh.clear()
        if not session.told:
            if question.forgotten:
                session.end()  # an empty session is none
            return None
        self._fetching = True
        return question

    def _beside(self, now: int, look: Look[Key]) -> Question[Key] | None:
        asks, _ = self._sorted(self._fresh, now, look)
        self._fresh.clear()
        self._express = dict(asks)
        return Question(0, _WITHOUT_SESSION, asks, []) if asks else None

    def _sorted(self, keys: Iterable[Key], now: int, look: Look[Key]) -> tuple[list[tuple[Key, Ask]], list[Key]]:
        """Those to ask for, and those to leave out now."""
        asks, leave = [], []
        partitions = self.partitions
        for key in keys:
            found = look(key, now) if key in partitions else None
            if isinstance(found, Ask):
                asks.append((key, found))
                continue
            leave.append(key)
            if found is not None:
                self._later[key] = found.at
        return asks, leave

    # ---- answers

    def answered(self, session_id: int) -> Mapping[Key, Ask]:
        """What the answer is about."""
        assert self._fetching
        self._fetching = False
        self._pause_ms = FIRST_PAUSE_MS
        session = self._session
        told = dict(session.told) if session.is_new else session.told
        session.answered(session_id)
        return told

    def failed(self, now: int, longest_pause_ms: int, error: int = 0) -> int:
        """The leader was not reached, or refused everything. When to try again."""
        assert self._fetching
        self._fetching = False
        self._session.end()  # nobody knows what the leader got of the last question
        if error in _SESSION_ERRORS:
            return now
        pause = self._pause_ms
        self._pause_ms = min(pause * 2, max(longest_pause_ms, 1))
        return now + pause

    def express_answered(self, *, well: bool) -> Mapping[Key, Ask]:
        """What the answer is about. If the chain has not taken them along by now, they travel by themselves again."""
        asked, self._express = self._express, {}
        if well and self._fetching:
            for key in asked:
                if key in self.partitions and key not in self._session.told:
                    self._fresh[key] = None
        return asked
