"""The lines of a node's log."""

import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from ottla.broker.settings.loggers import apply, levels, why_not
from ottla.model.properties import Settings, SettingsError
from ottla.node.logs import JsonLines, TextLines, write_logs
from ottla.protocol.messages import IncrementalAlterConfigsRequest

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"


def record(level: int = logging.WARNING, *, failed: bool = False) -> logging.LogRecord:
    error = None
    if failed:
        try:
            raise ValueError("no such thing")
        except ValueError:
            error = sys.exc_info()
    return logging.LogRecord("ottla.node", level, __file__, 1, "%s left", ("a broker",), error)


def test_a_line_for_people_has_a_time_with_its_zone_and_kafkas_name_of_the_level() -> None:
    assert re.fullmatch(f"{TIME} WARN node 2: a broker left", TextLines("node 2: ").format(record()))
    assert re.fullmatch(f"{TIME} FATAL a broker left", TextLines("").format(record(logging.CRITICAL)))


def test_a_line_of_json_is_one_object() -> None:
    line = JsonLines(7).format(record(failed=True))
    assert "\n" not in line
    found = json.loads(line)
    assert re.fullmatch(TIME, found.pop("time"))
    assert found.pop("exception").endswith("ValueError: no such thing")
    assert found == {"level": "WARN", "node": 7, "logger": "ottla.node", "message": "a broker left"}


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which gets back what it had."""
    handlers, level = list(logging.root.handlers), logging.root.level
    yield logging.root
    logging.root.handlers[:], logging.root.level = handlers, level


@pytest.mark.parametrize(
    ("given", "level", "formatter"),
    [
        ({}, logging.INFO, TextLines),
        ({"ottla_log_level": "debug", "ottla_log_format": "JSON"}, logging.DEBUG, JsonLines),
        ({"ottla_log_level": "WARN"}, logging.WARNING, TextLines),
    ],
)
def test_level_and_format_are_settings(
    root: logging.Logger, given: dict[str, str], level: int, formatter: type[logging.Formatter]
) -> None:
    write_logs(Settings.defaults("data", **given))
    (handler,) = root.handlers
    assert (root.level, type(handler.formatter)) == (level, formatter)


def test_another_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        SettingsError, match=r"ottla\.log\.level: 'LOUD' is not allowed: allowed is one of FATAL, ERROR"
    ):
        Settings.defaults("data", ottla_log_level="LOUD")


def change(name: str, value: str | None, operation: int = 0) -> IncrementalAlterConfigsRequest.AlterableConfig:
    return IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=operation, value=value)


def test_kip_412_a_parent_that_nobody_logs_with_has_a_level_too() -> None:
    logging.getLogger("ottla.some.where")
    assert levels()["ottla"] == levels()["ottla.some"] == levels()["root"]
    made = [change("ottla.some", "ERROR")]
    assert why_not(made) is None
    apply(made)
    assert (levels()["ottla.some"], levels()["ottla.some.where"]) == ("ERROR", "ERROR")
    apply([change("ottla.some", None, 1)])
    assert levels()["ottla.some.where"] == levels()["root"]
