"""Streams planned in the driver: Spark's questions about them (`java/Planning.java`), answered by this very process."""

from __future__ import annotations

import base64
import json
import threading
import traceback
from collections.abc import Callable
from typing import Any, Final

from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.pipelines.source.data_source import OttlaStreamReader
from ottla.pipelines.source.options import SourceOptions

TOLD: Final = "="
FAILED: Final = "!"


class Planning:
    """The streams that were begun from one data frame. A thread of the JVM for each asks here, one question at a time;
    only the end may come while another answer is still waited for."""

    class Java:
        implements: Final = ["ottla.Planning"]

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._streams: dict[str, _Stream] = {}
        self._begun = 0

    def ask(self, stream: str | None, question: str, start: str | None, end: str | None) -> str:
        try:
            return TOLD + self._answer(stream, question, start, end)
        except Exception:  # noqa: BLE001  whatever it is ends the query, which tells it: it must not end the thread
            return FAILED + traceback.format_exc()

    def _answer(self, stream: str | None, question: str, *about: str | None) -> str:
        if stream is None:
            self._begun += 1
            self._streams[str(self._begun)] = _Stream(OttlaStreamReader(self._options))
            return str(self._begun)
        if question == "stop":
            self._streams.pop(stream).stop()
            return ""
        return self._streams[stream].answer(question, *about)


class _Stream:
    """A reader. Whoever stops it while it waits for records does not wait for the end of that."""

    def __init__(self, reader: OttlaStreamReader) -> None:
        self._reader = reader
        self._asked = threading.Lock()
        self._answers: dict[str, Callable[[Any, Any], str]] = {
            "initial": lambda *_: json.dumps(reader.initialOffset()),
            "latest": self._latest,
            "seen": self._seen,
            "ceiling": self._ceiling,
            "parts": self._parts,
        }

    def answer(self, question: str, start: str | None, end: str | None) -> str:
        with self._asked:
            try:
                return self._answers[question](start, end)
            finally:
                if self._reader.ending:
                    self._reader.stop()

    def stop(self) -> None:
        self._reader.end()
        if self._asked.acquire(blocking=False):
            try:
                self._reader.stop()
            finally:
                self._asked.release()

    def _latest(self, start: str, limit: str) -> str:
        limits = ReadAllAvailable() if limit == "all" else self._reader.getDefaultReadLimit()
        return json.dumps(self._reader.latestOffset(json.loads(start), limits))

    def _seen(self, *_: object) -> str:
        seen = self._reader.reportLatestOffset()
        return "" if seen is None else json.dumps(seen)

    def _ceiling(self, *_: object) -> str:
        self._reader.prepareForTriggerAvailableNow()
        return ""

    def _parts(self, start: str, end: str) -> str:
        pickler: Any = CPickleSerializer()
        parts = self._reader.partitions(json.loads(start), json.loads(end))
        return " ".join(base64.b64encode(pickler.dumps(part)).decode() for part in parts)
