"""The follower's half of an incremental fetch session (KIP-227): what was said once is not said again."""

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from ottla.replication.follower import Ask

Key = TypeVar("Key", bound=Hashable)

_LAST_EPOCH = 0x7FFFFFFF


class Question(NamedTuple, Generic[Key]):
    session_id: int
    epoch: int
    asks: list[tuple[Key, Ask]]
    forgotten: list[Key]


class AskingSession(Generic[Key]):
    __slots__ = ("epoch", "id", "told")

    def __init__(self) -> None:
        self.id = 0
        self.epoch = 0
        self.told: dict[Key, Ask] = {}
        """Each partition as the leader knows it from us."""

    @property
    def is_new(self) -> bool:
        """The next question has to name every partition."""
        return self.epoch == 0

    def question(self, asks: Iterable[tuple[Key, Ask]], leave: Iterable[Key]) -> Question[Key]:
        """`asks` are all partitions if the session is new, else those that may have changed; `leave` are not wanted."""
        forgotten = [key for key in leave if self.told.pop(key, None) is not None]
        news = []
        for key, ask in asks:
            if self.told.get(key) != ask:
                self.told[key] = ask
                news.append((key, ask))
        return Question(self.id, self.epoch, news, [] if self.is_new else forgotten)

    def answered(self, session_id: int) -> None:
        if self.epoch:
            self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1
        elif session_id:
            self.id, self.epoch = session_id, 1
        else:
            self.told = {}  # the leader has no room for a session: everything is said again next time

    def end(self) -> None:
        """The leader does not know the session any more, or nobody knows what it got of the last question."""
        self.id = self.epoch = 0
        self.told = {}
