"""The first steps of docs/SQL.md, typed as they stand there: what is printed is what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sql_servers import SqlServer, unique

PAGE = (Path(__file__).parents[2] / "docs" / "SQL.md").read_text()
COLUMNS = 64
"""Of the terminal that the page was written in."""


def first_steps() -> list[tuple[str, str]]:
    """Commands and what they print, in order, up to what needs Spark."""
    part = PAGE.partition("## First steps")[2].partition("## Queries that stay")[0]
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", part, re.DOTALL | re.MULTILINE):
        for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = one.strip().splitlines()
            typed = next(end for end in range(1, len(lines) + 1) if is_whole("\n".join(lines[:end])))
            found.append(("\n".join(lines[:typed]), "\n".join(lines[typed:])))
    return found


def is_whole(command: str) -> bool:
    """Whether a shell would begin with it: its quotes are closed."""
    return subprocess.run(["bash", "-n", "-c", command], check=False, capture_output=True).returncode == 0


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_first_steps_print_what_the_page_says(bootstrap: str) -> None:
    if os.environ.get("OTTLA_TEST_BOOTSTRAP"):
        pytest.skip("its topic has the page's name, and another cluster may have it already")
    with SqlServer(bootstrap, {"ksql.service.id": unique("sql")}) as server:
        port = server.url.rpartition(":")[2]
        tool = f"{sys.executable} -m ottla"
        for command, printed in first_steps():
            typed = command.replace("127.0.0.1:8088", f"127.0.0.1:{port}")
            typed = typed.replace("ottla sql", f"{tool} sql -s {server.url}")
            typed = typed.replace("ottla consume", f"{tool} consume -b {bootstrap}")
            done = subprocess.run(
                ["bash", "-c", typed],
                check=False,
                capture_output=True,
                text=True,
                env={**os.environ, "COLUMNS": str(COLUMNS)},
            )
            assert lines_of(done.stdout + done.stderr) == lines_of(printed), command
