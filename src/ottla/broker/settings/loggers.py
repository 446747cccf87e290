"""The levels of this process's loggers, under the names that Kafka gives levels (KIP-412). Nothing is kept: a restart
brings the levels of the start back."""

import logging
from collections.abc import Iterable
from typing import Final

from ottla.model.errors import Errors
from ottla.protocol.messages import IncrementalAlterConfigsRequest

Change = IncrementalAlterConfigsRequest.AlterableConfig

ROOT: Final = "root"
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
_SET: Final = 0
_DELETE: Final = 1


def levels() -> dict[str, str]:
    """Every logger there is, with the level in force."""
    # Also those that nobody writes to: the level of `ottla` is that of all loggers below it that have none.
    names = sorted(logging.Logger.manager.loggerDict)
    return {ROOT: _name(logging.root), **{name: _name(logging.getLogger(name)) for name in names}}


def _name(logger: logging.Logger) -> str:
    return level_name(logger.getEffectiveLevel())


def level_name(level: int) -> str:
    """As Kafka calls it."""
    return next((name for name, value in LEVELS.items() if level >= value), "TRACE")


def why_not(changes: Iterable[Change]) -> tuple[Errors, str] | None:
    """The first objection. With one, none of the changes is made."""
    return next((refusal for change in changes if (refusal := _refusal(change)) is not None), None)


def _refusal(change: Change) -> tuple[Errors, str] | None:
    if change.config_operation not in (_SET, _DELETE):
        return Errors.INVALID_REQUEST, "the level of a logger can be set and deleted, there is nothing to append to"
    if change.name != ROOT and change.name not in logging.Logger.manager.loggerDict:
        return Errors.INVALID_CONFIG, f"there is no logger {change.name}"
    if change.config_operation == _DELETE:
        return (Errors.INVALID_REQUEST, "the root logger must have a level") if change.name == ROOT else None
    if change.value not in LEVELS:
        return Errors.INVALID_CONFIG, f"{change.value} is not a level for {change.name}: {', '.join(LEVELS)} are"
    return None


_before: Final[dict[str, int]] = {}
"""Levels of the loggers that were changed. Loggers are a process's, so this is too."""


def undo() -> None:
    """For a process that outlives its node, as that of tests does: what a restart would do."""
    for name, level in _before.items():
        _logger(name).setLevel(level)
    _before.clear()


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def apply(changes: Iterable[Change]) -> None:
    for change in changes:
        logger = _logger(change.name)
        _before.setdefault(change.name, logger.level)
        deleted = change.config_operation == _DELETE
        logger.setLevel(logging.NOTSET if deleted else LEVELS[change.value or ""])
