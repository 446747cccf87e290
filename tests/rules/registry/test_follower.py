"""Following `_schemas` while it cannot be read."""

import asyncio
import logging
from contextlib import suppress
from typing import ClassVar

import pytest

from ottla.client.errors import KafkaError
from ottla.model.errors import Errors
from ottla.registry.journal import reader
from ottla.registry.journal.reader import Follower
from ottla.registry.machine.machine import Machine
from tests.support.toy_language import TOY_LANGUAGES

GONE = Errors.UNKNOWN_TOPIC_OR_PARTITION


class Refused(Follower):
    """Its topic refuses to be read, each time for the next reason; then the test is over."""

    reasons: ClassVar[list[Errors]] = []

    @property
    def is_current(self) -> bool:
        return True

    async def _follow(self) -> None:
        if not self.reasons:
            raise asyncio.CancelledError
        raise KafkaError(self.reasons.pop(0), "_schemas")


def test_what_is_wrong_with_the_topic_is_said_once_however_long_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_AGAIN_S", 0)

    async def follow() -> None:
        follower = Refused(None, Machine(TOY_LANGUAGES), "_schemas", None)  # type: ignore[arg-type]
        Refused.reasons[:] = [GONE, GONE, GONE, Errors.TOPIC_AUTHORIZATION_FAILED, GONE]
        with suppress(asyncio.CancelledError):
            await follower.run()
        assert follower.trouble is not None and GONE.name in follower.trouble

    with caplog.at_level(logging.WARNING):
        asyncio.run(follow())
    assert [record.getMessage().rpartition("(")[2] for record in caplog.records] == [
        "UNKNOWN_TOPIC_OR_PARTITION)",
        "TOPIC_AUTHORIZATION_FAILED)",
        "UNKNOWN_TOPIC_OR_PARTITION)",
    ]
