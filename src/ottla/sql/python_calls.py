"""Calls of the code that users write, each with an end: what takes longer than its time is stopped.

Whoever is late has `Late` raised in it, again and again until it is out. Nothing in the code may hold it, as a bare
`except:` in a loop would for ever: the code is compiled so that handlers, `with` and what leaves a `finally` let it
through.
"""

import ast
import builtins
import ctypes
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Any, Final, TypeVar


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


@lru_cache(1024)
def _compiled(source: str, name: str) -> Any:
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": f"sql_function_{name.lower()}", **_KNOWN}
    exec(compile(_LetsLateThrough().visit(ast.parse(source)), f"<{name}>", "exec"), names)
    return next(each for known, each in reversed(names.items()) if known.upper() == name)


def _is_late(error: BaseException | None) -> bool:
    """`except*` makes groups."""
    return isinstance(error, Late) or (isinstance(error, BaseExceptionGroup) and error.subgroup(Late) is not None)


def _unless_late() -> None:
    """Where an exception would be held: raises it on if it is ours."""
    if _is_late(sys.exc_info()[1]):
        raise Late


class _Within:
    """A context manager that may hold whatever is raised, but for that."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __enter__(self) -> Any:
        return type(self._inner).__enter__(self._inner)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        held = type(self._inner).__exit__(self._inner, kind, error, trace)
        return bool(held) and not _is_late(error)


_LATE: Final = "__late__"
_CHECK: Final = "__unless_late__"
_WITHIN: Final = "__within__"
_KNOWN: Final = {_LATE: Late, _CHECK: _unless_late, _WITHIN: _Within}


class _LetsLateThrough(ast.NodeTransformer):
    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        if node.handlers:
            first = ast.ExceptHandler(ast.Name(_LATE, ast.Load()), None, [ast.Raise()])
            node.handlers.insert(0, _at(node.handlers[0], first))
        return self._finally(node)

    def visit_TryStar(self, node: ast.TryStar) -> ast.AST:
        self.generic_visit(node)
        for handler in node.handlers:
            handler.body.insert(0, _checked(handler.body[0]))
        return self._finally(node)

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        for item in node.items:
            before = item.context_expr
            item.context_expr = _at(before, ast.Call(ast.Name(_WITHIN, ast.Load()), [before], []))
        return node

    @staticmethod
    def _finally(node: ast.Try | ast.TryStar) -> ast.AST:
        """What leaves it forgets what was raised."""
        if any(isinstance(part, _LEAVES) for each in node.finalbody for part in ast.walk(each)):
            node.finalbody.insert(0, _checked(node.finalbody[0]))
        return node


_LEAVES: Final = (ast.Return, ast.Break, ast.Continue)
T = TypeVar("T", bound=ast.AST)


def _checked(place: ast.stmt) -> ast.stmt:
    return _at(place, ast.Expr(ast.Call(ast.Name(_CHECK, ast.Load()), [], [])))


def _at(place: ast.AST, made: T) -> T:
    return ast.fix_missing_locations(ast.copy_location(made, place))


def limited(call: Callable[[], Any], timeout_ms: int, name: str) -> Any:
    try:
        return _WATCH.watched(call, timeout_ms / 1000)
    except (Exception, Late, SystemExit, BaseExceptionGroup) as error:
        if _is_late(error):
            raise ValueError(f"{name} took longer than {timeout_ms} ms and was stopped") from None
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


@lru_cache(1024)
def instance(source: str, name: str) -> Any:
    """Of the class of an aggregate: it keeps nothing itself."""
    return _compiled(source, name)()
