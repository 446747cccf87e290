"""A job: something that runs in a Spark host until it is told to stop. Plain data, so that it can be written down.

    Job("orders", "shop.pipelines:copy_orders", {"topic": "orders"})

`shop.pipelines:copy_orders` is called with a session of the job's own and the arguments, and gives a started
StreamingQuery, or any `Work`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""Between the attempts of a job that fails; one that ran for so long begins with the short ones again."""

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,200}")


class CannotStart(Exception):
    """To try again would not help. The text says what has to be changed."""


class State(Enum):
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    """It failed and is tried again after a pause."""
    FAILED = "FAILED"
    """It failed and stays so until somebody starts it anew."""
    STOPPED = "STOPPED"
    """It was told to stop, or had no more to do."""


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    entry: str
    """`module:function`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """As JSON has them."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise CannotStart(f"{self.name!r} is no name of a job: letters, digits, '.', '_' and '-' are allowed")
        if not isinstance(self.entry, str) or not all(self.entry.partition(":")):
            raise CannotStart(f"{self.name}: {self.entry!r} is no entry: module:function is expected")
        if not isinstance(self.arguments, Mapping):
            raise CannotStart(f"{self.name}: arguments have to be an object, not {type(self.arguments).__name__}")
        try:
            json.dumps(dict(self.arguments))
        except (TypeError, ValueError) as error:
            raise CannotStart(f"{self.name}: its arguments cannot be written as JSON: {error}") from error

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "entry": self.entry, "arguments": dict(self.arguments)}

    @staticmethod
    def of_json(document: object) -> Job:
        """Raises CannotStart."""
        if not isinstance(document, dict) or not {"name", "entry"} <= document.keys() <= {"name", "entry", "arguments"}:
            raise CannotStart('a job is {"name": ..., "entry": "module:function", "arguments": {...}}')
        return Job(document["name"], document["entry"], document.get("arguments", {}))

    def load(self) -> Entry:
        """Raises CannotStart when there is no such function here."""
        module, _, name = self.entry.partition(":")
        try:
            found = getattr(import_module(module), name, None)
        except Exception as error:
            raise CannotStart(f"{self.name}: {module} cannot be imported: {type(error).__name__}: {error}") from error
        if not callable(found):
            raise CannotStart(f"{self.name}: {module} has no function {name}")
        entry: Entry = found
        return entry


class Work(Protocol):
    """What a job does once it has begun."""

    def run(self) -> None:
        """Until `stop`, or until nothing is left to do. Raises what made it fail."""

    def stop(self) -> None:
        """From any thread; returns at once. The micro-batch under way ends."""

    def progress(self) -> Mapping[str, Any]:
        """For people, as JSON has it."""


Entry = Callable[["SparkSession", Mapping[str, Any]], Any]
"""Gives a Work or a StreamingQuery. Raises CannotStart where trying again would not help."""


class Pauses:
    """How long a job that failed waits for its next attempt. Time is in seconds, on a clock that only goes forward."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = FIRST_PAUSE_S

    def after(self, ran_s: float) -> float:
        if ran_s >= LONGEST_PAUSE_S:
            self._next = FIRST_PAUSE_S
        pause = self._next
        self._next = min(2 * pause, LONGEST_PAUSE_S)
        return pause
