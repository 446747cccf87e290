"""Clients in other languages: a driver process each, spoken to by one JSON object per line."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support import jvm
from tests.support.clients.base import CODECS, Given, Refused, Seen
from tests.support.programs import Dialogue

_SOURCES = Path(__file__).parents[2] / "wire"


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class Foreign:
    """The verbs of Client, each sent to the driver under its own name."""

    lacks: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, bootstrap: str) -> None:
        self._dialogue = Dialogue("the driver", [*self.command(), bootstrap])

    @classmethod
    def command(cls) -> list[str]:
        """How the driver is run, built first if need be. Skips the test where its toolchain is missing."""
        raise NotImplementedError

    def _ask(self, op: str, **arguments: Any) -> Any:
        answer = json.loads(self._dialogue.ask(json.dumps({"op": op} | arguments)))
        if "error" in answer:
            raise Refused(answer["error"], answer["detail"])
        return answer["ok"]

    def create_topic(
        self, topic: str, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        chosen = dict(configs or {})
        self._ask(
            "create_topic", topic=topic, partitions=partitions, replication_factor=replication_factor, configs=chosen
        )

    def delete_topic(self, topic: str) -> None:
        self._ask("delete_topic", topic=topic)

    def list_topics(self) -> set[str]:
        return set(self._ask("list_topics"))

    def create_partitions(self, topic: str, total: int) -> None:
        self._ask("create_partitions", topic=topic, total=total)

    def partition_count(self, topic: str) -> int:
        return int(self._ask("partition_count", topic=topic))

    def describe_topic_configs(self, topic: str) -> dict[str, str]:
        return dict(self._ask("describe_topic_configs", topic=topic))

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self._ask("alter_topic_configs", topic=topic, configs=dict(configs))

    def produce(
        self,
        topic: str,
        records: Sequence[Given],
        *,
        partition: int = 0,
        codec: str = "none",
        idempotent: bool = False,
        max_request_bytes: int = 1_000_000,
    ) -> list[int]:
        shown = [
            {
                "key": _text(record.key),
                "value": _text(record.value),
                "timestamp": record.timestamp,
                "headers": [{"key": key, "value": _text(value)} for key, value in record.headers],
            }
            for record in records
        ]
        offsets = self._ask(
            "produce",
            topic=topic,
            records=shown,
            partition=partition,
            codec=codec,
            idempotent=idempotent,
            max_request_bytes=max_request_bytes,
        )
        return list(offsets)

    def consume(self, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Seen]:
        return [
            Seen(
                record["offset"],
                record["timestamp"],
                _bytes(record["key"]),
                _bytes(record["value"]),
                tuple((header["key"], _bytes(header["value"])) for header in record["headers"]),
            )
            for record in self._ask("consume", topic=topic, count=count, partition=partition, offset=offset)
        ]

    def earliest_offset(self, topic: str, partition: int = 0) -> int:
        return int(self._ask("earliest_offset", topic=topic, partition=partition))

    def latest_offset(self, topic: str, partition: int = 0) -> int:
        return int(self._ask("latest_offset", topic=topic, partition=partition))

    def offset_for_time(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        offset: int | None = self._ask("offset_for_time", topic=topic, timestamp=timestamp, partition=partition)
        return offset

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        return int(self._ask("delete_records", topic=topic, before=before, partition=partition))

    def close(self) -> None:
        self._dialogue.close()


def _run(command: Sequence[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"


def franz_go() -> Path:
    """The program of tests/wire/go."""
    return go_program("franz-go", "go")


def go_program(name: str, directory: str) -> Path:
    """The program of a directory of tests/wire, built once for each of its versions. Skips the test where Go is
    missing."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    source = _SOURCES / directory
    place = jvm.built(name, [*sorted(source.glob("*.go")), source / "go.mod", source / "go.sum"])
    if not place.exists():
        partial = place.with_suffix(f".part{os.getpid()}")
        _run([go, "build", "-o", str(partial), "."], source)
        partial.replace(place)
    return place


def node_program(name: str, directory: str) -> list[str]:
    """How driver.js of a directory of tests/wire is run, with its packages, which are fetched once for each version of
    its package.json. Skips the test where Node is missing."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    source = _SOURCES / directory
    place = jvm.built(name, [source / "package.json"])
    if not place.exists():
        partial = place.with_suffix(f".part{os.getpid()}")
        partial.mkdir()
        shutil.copy(source / "package.json", partial)
        _run([npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"], partial)
        jvm.finished(partial, place)
    return ["env", f"NODE_PATH={place / 'node_modules'}", node, str(source / "driver.js")]


def python_program(name: str, directory: str) -> list[str]:
    """How driver.py of a directory of tests/wire is run, in an environment of its own with what its two lists of
    requirements say, which is made once for each version of them: what build.txt names is there before the others are
    built."""
    source = _SOURCES / directory
    lists = [source / "build.txt", source / "requirements.txt"]
    place = jvm.built(name, lists)
    if not place.exists():
        partial = place.with_suffix(f".part{os.getpid()}")
        _run([sys.executable, "-m", "venv", str(partial)], source)
        pip = [str(partial / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        for each in lists:
            _run([*pip, "--no-build-isolation", "-r", str(each)], source)
        jvm.finished(partial, place)
    return [str(place / "bin" / "python"), str(source / "driver.py")]


def apache_java(program: str) -> list[str]:
    """How a class of tests/wire/java is run. Skips the test where Java or the jars are missing."""
    jars = jvm.kafka_jars()
    return jvm.java(jars, program, classes=jvm.compiled(jars, _SOURCES / "java" / f"{program}.java"))


class FranzGo(Foreign):
    name: ClassVar[str] = "franz-go"
    codecs: ClassVar[tuple[str, ...]] = CODECS
    lacks: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def command(cls) -> list[str]:
        return [str(franz_go()), "answer"]


class KafkaJs(Foreign):
    name: ClassVar[str] = "kafkajs"
    codecs: ClassVar[tuple[str, ...]] = CODECS
    lacks: ClassVar[frozenset[str]] = frozenset({"null header values"})

    @classmethod
    def command(cls) -> list[str]:
        return node_program("kafkajs", "node")


class ApacheJava(Foreign):
    name: ClassVar[str] = "apache-java"
    codecs: ClassVar[tuple[str, ...]] = CODECS
    lacks: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def command(cls) -> list[str]:
        return apache_java("Driver")
