"""The states of an application, with Kafka Streams' names, and who is told or asked while it runs."""

import threading
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from ottla.model.ids import TopicPartition

CREATED: Final = "CREATED"
REBALANCING: Final = "REBALANCING"
"""It starts, or a query of it starts again."""
RUNNING: Final = "RUNNING"
PENDING_SHUTDOWN: Final = "PENDING_SHUTDOWN"
NOT_RUNNING: Final = "NOT_RUNNING"
PENDING_ERROR: Final = "PENDING_ERROR"
ERROR: Final = "ERROR"

_FOLLOWING: Final = {
    CREATED: (REBALANCING, PENDING_SHUTDOWN),
    REBALANCING: (RUNNING, PENDING_SHUTDOWN, PENDING_ERROR),
    RUNNING: (REBALANCING, PENDING_SHUTDOWN, PENDING_ERROR),
    PENDING_SHUTDOWN: (NOT_RUNNING,),
    NOT_RUNNING: (),
    PENDING_ERROR: (ERROR,),
    ERROR: (),
}
"""As in KafkaStreams.State."""


class StreamThreadExceptionResponse(Enum):
    """What an uncaught exception handler says about a query that has failed."""

    REPLACE_THREAD = "REPLACE_THREAD"
    """It starts again, with the batch that failed."""
    SHUTDOWN_CLIENT = "SHUTDOWN_CLIENT"
    SHUTDOWN_APPLICATION = "SHUTDOWN_APPLICATION"
    """As SHUTDOWN_CLIENT: there is one."""


class StateRestoreListener(Protocol):
    """Told how a store comes back from its changelog."""

    def on_restore_start(self, place: TopicPartition, store: str, starting_offset: int, ending_offset: int) -> None: ...
    def on_batch_restored(self, place: TopicPartition, store: str, end_offset: int, number: int) -> None: ...
    def on_restore_end(self, place: TopicPartition, store: str, total: int) -> None: ...


StateListener = Callable[[str, str], None]
"""Called with the new state and the old one."""
UncaughtExceptionHandler = Callable[[Exception], StreamThreadExceptionResponse]


class Hooks:
    """What a user has said about a run, before it or during it."""

    __slots__ = ("_going", "on_failure", "on_restore", "on_state")

    def __init__(self) -> None:
        self.on_state: StateListener | None = None
        self.on_failure: UncaughtExceptionHandler | None = None
        self.on_restore: StateRestoreListener | None = None
        self._going = threading.Event()
        self._going.set()

    @property
    def paused(self) -> bool:
        return not self._going.is_set()

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def wait_while_paused(self, stop: threading.Event, poll_s: float = 0.05) -> None:
        while not stop.is_set() and not self._going.wait(poll_s):
            pass


class Life:
    """Which state a run is in. Changed from any thread, a signal handler too."""

    __slots__ = ("_hooks", "_lock", "state")

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._lock = threading.RLock()
        self.state = CREATED

    def to(self, new: str) -> bool:
        """Whether it may become that; if not it stays what it is, as one that is told to stop while it starts does."""
        with self._lock:
            old = self.state
            if new not in _FOLLOWING[old]:
                return False
            self.state = new
        if self._hooks.on_state is not None:
            self._hooks.on_state(new, old)
        return True

    def end(self, error: BaseException | None) -> None:
        """After an error that nobody survived, or without one."""
        if error is None or self.state == PENDING_SHUTDOWN:
            self.to(PENDING_SHUTDOWN)
            self.to(NOT_RUNNING)
        else:
            self.to(PENDING_ERROR)
            self.to(ERROR)

    @property
    def over(self) -> bool:
        return self.state in (NOT_RUNNING, ERROR)
