"""How a node writes its log: to standard error, a line of text or of JSON for each message, times with their zone."""

import logging
import sys
import time
from contextlib import suppress
from typing import Final

from ottla.broker.settings.loggers import LEVELS, level_name
from ottla.model.properties import Settings

JSON: Final = "json"


def write_logs(settings: Settings) -> None:
    """From now on, as `ottla.log.level` and `ottla.log.format` say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(settings.node_id) if _is_json(settings) else TextLines(_who(settings)))
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(LEVELS[settings.get_str("ottla.log.level").upper()])


def write_text_logs(level: int = logging.INFO) -> None:
    """From now on, for a service that is no node."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextLines(""))
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(level)


def tell_failed_start(settings: Settings, error: Exception) -> None:
    """To whoever reads the log by machine as part of it, to people as a sentence."""
    if _is_json(settings):
        logging.getLogger(__name__).critical("ottla cannot start: %s", error)
        return
    with suppress(OSError):  # the exit code says it as well
        print(f"ottla cannot start: {error}", file=sys.stderr)


def _is_json(settings: Settings) -> bool:
    return settings.get_str("ottla.log.format").lower() == JSON


def _who(settings: Settings) -> str:
    """Several nodes on one machine often share a terminal."""
    alone = len(settings.voters) == 1 and settings.is_broker and settings.is_controller
    return "" if alone else f"node {settings.node_id}: "


def _time(record: logging.LogRecord) -> str:
    """As ISO 8601 has it, in the zone of the machine, which is named: readers of several logs must not guess."""
    local = time.localtime(record.created)
    zone = time.strftime("%z", local)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{int(record.msecs):03d}{zone[:3]}:{zone[3:]}"


class TextLines(logging.Formatter):
    def __init__(self, who: str) -> None:
        super().__init__(f"%(asctime)s %(level)s {who}%(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _time(record)

    def format(self, record: logging.LogRecord) -> str:
        record.level = level_name(record.levelno)
        return super().format(record)


class JsonLines(logging.Formatter):
    def __init__(self, node_id: int) -> None:
        import json  # noqa: PLC0415  who reads text does not pay for it

        super().__init__()
        self._node_id = node_id
        self._encode = json.JSONEncoder(ensure_ascii=False).encode

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": level_name(record.levelno),
            "node": self._node_id,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return self._encode(line)
