"""What a command changed in memory before its records were appended, and how to take it back if the log refuses them.

Records change a shard by replay, which comes after the append. What it keeps beside its records (a classic group in the
middle of a rebalance, who waits, deadlines) is changed while it decides; every such change is announced here first.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

_MISSING: Final = object()


class Undo:
    __slots__ = ("_kept", "_steps")

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._kept: dict[int, object] = {}
        """By identity: what is remembered whole already, and must not be collected while its id is in use here."""

    def keep(self, subject: object) -> None:
        """Remembers every slot of it, with a copy of its tables; of what these hold nothing but the identity."""
        if id(subject) in self._kept:
            return
        self._kept[id(subject)] = subject
        slots: tuple[str, ...] = type(subject).__slots__  # type: ignore[attr-defined]
        before = [(name, _copied(getattr(subject, name))) for name in slots]

        def restore() -> None:
            for name, value in before:
                setattr(subject, name, value)

        self._steps.append(restore)

    def field(self, subject: object, name: str) -> None:
        before = getattr(subject, name)
        self._steps.append(lambda: setattr(subject, name, before))

    def key(self, table: dict[Any, Any], key: Hashable) -> None:
        """For a table that is too large to be copied."""
        before = table.get(key, _MISSING)

        def restore() -> None:
            if before is _MISSING:
                table.pop(key, None)
            else:
                table[key] = before

        self._steps.append(restore)

    def step(self, take_back: Callable[[], None]) -> None:
        self._steps.append(take_back)

    def clear(self) -> None:
        """The change stands."""
        self._steps.clear()
        self._kept.clear()

    def run(self) -> None:
        """The change never happened; the last part of it is taken back first."""
        steps, self._steps, self._kept = self._steps, [], {}
        for take_back in reversed(steps):
            take_back()


def _copied(value: object) -> object:
    return value.copy() if isinstance(value, dict | list) else value
