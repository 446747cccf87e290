"""Rows of the signal table, by which users ask for incremental snapshots. Without I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from ottla.connect import spi
from ottla.connect.connectors.postgresql.pgoutput import Text
from ottla.connect.connectors.postgresql.position import Portion, Position
from ottla.connect.transforms.patterns import compiled

EXECUTE: Final = "execute-snapshot"
STOP: Final = "stop-snapshot"
PAUSE: Final = "pause-snapshot"
RESUME: Final = "resume-snapshot"
MOST_CHARACTERS: Final = 1 << 20


class Condition(msgspec.Struct, rename="kebab"):
    data_collection: str
    filter: str = ""


class Asked(msgspec.Struct, rename="kebab"):
    """The `data` of a signal."""

    data_collections: list[str] = []
    type: str = "incremental"
    additional_condition: str = ""
    additional_conditions: list[Condition] = []


logger = logging.getLogger(__name__)


def signalled(position: Position, row: Sequence[Text], tables: Callable[[], Sequence[str]]) -> Position:
    """What a row (id, type, data) makes of it. What is no signal is told in the log and changes nothing, as it would be
    met again and again."""
    _, kind, data = (each if isinstance(each, str) else "" for each in (*row, None, None, None)[:3])
    match kind:
        case "pause-snapshot":
            return position._replace(paused=True)
        case "resume-snapshot":
            return position._replace(paused=False)
        case "execute-snapshot" | "stop-snapshot":
            try:
                asked = msgspec.json.decode((data or "{}")[:MOST_CHARACTERS], type=Asked)
                return _executed(position, asked, tables()) if kind == EXECUTE else _stopped(position, asked)
            except (msgspec.MsgspecError, ValueError) as error:
                logger.warning("the signal %s with the data %r is passed over: %s", kind, data, error)
        case "log":
            logger.info("signal: %s", data)
        case _:
            logger.warning("a signal of the type %r is passed over; there are %s", kind, KINDS)
    return position


KINDS: Final = (EXECUTE, STOP, PAUSE, RESUME, "log")


def _executed(position: Position, asked: Asked, tables: Sequence[str]) -> Position:
    """A collection is a name or a pattern, `schema.table` or `database.schema.table`."""
    conditions = {each.data_collection: each.filter for each in asked.additional_conditions}
    waiting = {each.table for each in position.chunks}
    more: dict[str, Portion] = {}
    for wanted in asked.data_collections:
        pattern = compiled(f"(?i){wanted}")
        for table in tables:
            if (table == wanted or pattern.fullmatch(table)) and table not in waiting:
                condition = conditions.get(wanted) or conditions.get(table) or asked.additional_condition
                more[table] = Portion(table, (), condition)
    if not more:
        logger.warning("the signal names no table that is captured, or only some that are read already: %s", asked)
    return position._replace(chunks=(*position.chunks, *more.values()))


def _stopped(position: Position, asked: Asked) -> Position:
    if not asked.data_collections:
        return position._replace(chunks=())
    patterns = [compiled(f"(?i){each}") for each in asked.data_collections]
    left = tuple(each for each in position.chunks if not any(one.fullmatch(each.table) for one in patterns))
    return position._replace(chunks=left)


def checked_condition(portion: Portion) -> str:
    """Somebody who may write signals may read the table: its filter is SQL, as Debezium's is, but one expression."""
    if ";" in portion.condition or "--" in portion.condition:
        raise spi.ConnectorFailed(f"the filter {portion.condition!r} of a signal is no single condition")
    return portion.condition


def row_of(names: Sequence[str], texts: Sequence[Text]) -> list[Any]:
    """id, type, data, by their names; by their places if they are called otherwise."""
    wanted = ("id", "type", "data")
    if all(name in names for name in wanted):
        return [texts[names.index(name)] for name in wanted]
    return list(texts[:3])
