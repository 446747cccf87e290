"""What is done to logs by the clock."""

from ottla.broker.housekeeping import flush_is_due
from ottla.storage.config import LogConfig
from tests.rules.storage.scene import NOW, append, created


def test_flush_ms_holds_also_when_the_wall_clock_was_set_back() -> None:
    log = created(config=LogConfig(flush_ms=1000))
    append(log, b"a")
    assert not flush_is_due(log, NOW + 999)
    assert flush_is_due(log, NOW + 1000)
    assert flush_is_due(log, NOW - 3_600_000)
