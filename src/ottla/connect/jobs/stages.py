"""What a record goes through between a topic and a connector: converters, transforms, each a stage that may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.connect.dead_letters import Failure, Stage
from ottla.connect.jobs.spec import JobSpec

T = TypeVar("T")

if TYPE_CHECKING:
    from ottla.connect.data.record import ConnectRecord
    from ottla.connect.jobs.chain import RawIn
    from ottla.connect.jobs.outgoing import RawRecord
    from ottla.connect.spi import Row


class StageFailed(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class Stages:
    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec

    def inbound(self, raw: RawIn) -> ConnectRecord | None:
        raise NotImplementedError

    def outbound(self, row: Row, now_ms: int) -> RawRecord | None:
        raise NotImplementedError
