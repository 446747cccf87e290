"""A decision about groups in the making, and the refusal that ends it early."""

from collections.abc import Callable
from typing import Any

from ottla.coordinator.records import CoordinatorRecord
from ottla.coordinator.shard import Decision, Now, Respond
from ottla.model.errors import Errors


class GroupError(Exception):
    """A request that cannot be granted. Ends a decide early; nothing has been changed by then."""

    def __init__(self, error: Errors, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message


class Draft:
    """A decision in the making."""

    __slots__ = ("effects", "records")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self.effects: list[object] = []

    def respond(self, token: int, response: Any) -> None:
        self.effects.append(Respond(token, response))

    def decision(self, reply: Any) -> Decision[Any]:
        return Decision(reply, tuple(self.records), tuple(self.effects))


Action = Callable[[Draft, Now], None]
"""What a deadline does."""
