"""Calls of the code that users write, each with an end: what takes longer than its time is stopped.

Whoever is late has `Late` raised in it, again and again until it is out. Handlers of the code never see it: the
code is compiled with one before each of them that lets it through, as a bare `except:` in a loop would hold it for
ever.
"""

import ast
import builtins
import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import Any, Final


class Late(BaseException):
    """Raised inside a call that takes too long. No Exception, so that the call cannot catch it by mistake."""


@dataclass(frozen=True, slots=True)
class Code:
    """A function by its text: compiled where it is first called."""

    source: str
    name: str
    timeout_ms: int

    def __call__(self, *args: Any) -> Any:
        """Raises ValueError for whatever the call raised, and for one that was stopped."""
        return limited(lambda: _compiled(self.source, self.name)(*args), self.timeout_ms, self.name)


@cache
def _compiled(source: str, name: str) -> Any:
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": f"sql_function_{name.lower()}", _LATE: Late}
    exec(compile(_LetsLateThrough().visit(ast.parse(source)), f"<{name}>", "exec"), names)
    return next(each for known, each in reversed(names.items()) if known.upper() == name)


_LATE: Final = "__late__"


class _LetsLateThrough(ast.NodeTransformer):
    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        if node.handlers:
            first = ast.ExceptHandler(ast.Name(_LATE, ast.Load()), None, [ast.Raise()])
            ast.fix_missing_locations(ast.copy_location(first, node.handlers[0]))
            node.handlers.insert(0, first)
        return node


def limited(call: Callable[[], Any], timeout_ms: int, name: str) -> Any:
    try:
        return _WATCH.watched(call, timeout_ms / 1000)
    except Late:
        raise ValueError(f"{name} took longer than {timeout_ms} ms and was stopped") from None
    except Exception as error:
        raise ValueError(f"{name}: {type(error).__name__}: {error}") from error


class _Watch:
    """Stops calls that are late, from a thread beside them. What waits inside of C (a sleep, a socket) is stopped when
    that comes back, not before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, float] = {}
        self._thread: threading.Thread | None = None

    def watched(self, call: Callable[[], Any], seconds: float) -> Any:
        here = threading.get_ident()
        with self._lock:
            self._deadlines[here] = monotonic() + seconds
            if self._thread is None or not self._thread.is_alive():  # a forked process has none
                self._thread = threading.Thread(target=self._look, name="sql-function-watch", daemon=True)
                self._thread.start()
        try:
            return call()
        finally:
            while True:
                try:
                    self._forget(here)
                    break
                except Late:  # it was stopped just as it ended
                    continue

    def _forget(self, thread: int) -> None:
        """From here on nothing is raised in it, also not what was about to be."""
        with self._lock:
            self._deadlines.pop(thread, None)
            _raise_in(thread, None)

    def _look(self) -> None:
        pause = threading.Event()
        late: list[int] = []
        while not pause.wait(_AGAIN_S if late else _LOOK_S):
            now = monotonic()
            with self._lock:
                late = [thread for thread, deadline in self._deadlines.items() if deadline < now]
                for thread in late:
                    _raise_in(thread, Late)


_LOOK_S: Final = 0.05
_AGAIN_S: Final = 0.002
"""Until it is raised again in whoever is late: what catches it is not in the same place each time."""


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )


_WATCH: Final = _Watch()


@cache
def instance(source: str, name: str) -> Any:
    """Of the class of an aggregate: it keeps nothing itself."""
    return _compiled(source, name)()
