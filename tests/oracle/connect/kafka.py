"""Kafka's own transforms and converters: java/ConnectOracle.java, one JVM for the whole module."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support import jvm
from tests.support.patience import PATIENCE_SECONDS

SOURCES = Path(__file__).parent / "java"


class ConnectOracle:
    """A JVM that answers cases, many at a time."""

    def __init__(self) -> None:
        jars = jvm.jars_of("connect-oracle-jars", SOURCES / "pom.xml")
        classes = jvm.compiled(jars, SOURCES / "ConnectOracle.java")
        command = ["java", *jvm.TOOL_FLAGS, "-Duser.timezone=UTC", "-cp", f"{classes}:{jars}/*", "ConnectOracle"]
        self._command = command

    def ask(self, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers, in order."""
        lines = "".join(json.dumps({**case, "id": number}) + "\n" for number, case in enumerate(cases))
        with tempfile.TemporaryFile() as errors:
            done = subprocess.run(
                self._command,
                input=lines.encode(),
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=PATIENCE_SECONDS * 4,
                check=False,
            )
            errors.seek(0)
            assert done.returncode == 0, errors.read().decode(errors="replace")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["id"] for answer in answers] == list(range(len(cases)))
        return answers
