"""Kafka Streams as the oracle: java/Oracle.java with its jars, one JVM for all cases."""

import itertools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from tests.oracle.calls import answered
from tests.oracle.cases import Answer, Case, Entry, Written
from tests.support import jvm
from tests.support.patience import PATIENCE_SECONDS

SOURCES = Path(__file__).parent / "java"
MEMORY = Path("/dev/shm")
ROOM = 1 << 30
"""Containers have 64 MB there; RocksDB reserves four for each store."""
AHEAD = 8
"""So many cases are with the JVM at a time."""


def oracle_jars() -> Path:
    """Kafka Streams and its test driver. Skips the test where they cannot be had."""
    return jvm.jars_of("oracle-jars", SOURCES / "pom.xml")


def oracle_classes(jars: Path) -> Path:
    return jvm.compiled(jars, SOURCES / "Oracle.java", *sorted(SOURCES.glob("[!O]*.java")), SOURCES / "Options.java")


class Oracle:
    """A JVM that answers cases."""

    def __init__(self) -> None:
        jars = oracle_jars()
        flags = [*jvm.TOOL_FLAGS, f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.xml'}"]
        # The driver commits after each record, and RocksDB would wait for the disk.
        if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
            flags.append(f"-Djava.io.tmpdir={MEMORY}")
        command = ["java", *flags, "-cp", f"{oracle_classes(jars)}:{jars}/*", "Oracle"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8"
        )
        self._tickets = itertools.count()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read_on, daemon=True)
        self._reader.start()

    def ask(self, case: Case) -> Answer:
        return next(self.ask_all([case]))[1]

    def ask_all(self, cases: Sequence[Case]) -> Iterator[tuple[Case, Answer]]:
        """Each with its answer. The JVM works on the next ones while the caller looks at the last."""
        tickets: list[str] = []
        for number, case in enumerate(cases):
            for other in cases[len(tickets) : number + AHEAD]:
                tickets.append(self._send(other))
            yield case, self._receive(tickets[number], case)

    def _send(self, case: Case) -> str:
        assert self._process.stdin is not None
        ticket = f"{next(self._tickets)} {case.name}"
        self._functions.update(case.functions)
        self._process.stdin.write(json.dumps(case.document() | {"id": ticket}) + "\n")
        self._process.stdin.flush()
        return ticket

    def _receive(self, ticket: str, case: Case) -> Answer:
        """Answers that nobody waited for, because a test failed before, are passed over."""
        while line := self._lines.get():
            document: dict[str, Any] = json.loads(line)
            if "call" in document:
                self._answer_call(document)
            elif document["id"] == ticket:
                return _answer(document)
        raise AssertionError(f"the JVM died over {case.name}: {self._last_words()}")

    def _answer_call(self, asked: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(answered(self._functions[asked["call"]], asked["arguments"])) + "\n")
        self._process.stdin.flush()

    def _read_on(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _last_words(self) -> str:
        self._process.wait(PATIENCE_SECONDS)
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        self._process.stdout.close()
        self._errors.close()


def _answer(document: dict[str, Any]) -> Answer:
    outputs = [[_written(record) for record in records] for records in document.get("outputs", [])]
    stores = {name: [Entry(*entry) for entry in entries] for name, entries in document.get("stores", {}).items()}
    return Answer(document.get("describe", ""), outputs, stores, document.get("error"))


def _written(record: dict[str, Any]) -> Written:
    headers = tuple((name, value) for name, value in record["headers"])
    return Written(record["topic"], record["key"], record["value"], record["timestamp"], headers)
