"""The first test with the `kafka` fixture in a new environment: the whole of `pytest test_first.py`, from exec to exit.

ottla and pytest are installed into an environment of their own, as `pip install '.[testing]'` does it. What pytest has
rewritten and kept is removed before every round, so that each is a first one. Apache Kafka has no counterpart.
"""

import subprocess
import sys
import time
from pathlib import Path

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, value_at_most
from bench.servers import REPOSITORY

NAME = "first test"
METRIC = Metric("seconds", "pytest, one test with `kafka`", "s", value_at_most(0.6))
TEST = "def test_first(kafka):\n    assert kafka.bootstrap_servers\n"


def run(context: Context) -> list[Measure]:
    environment, suite = context.directory / "environment", context.directory / "suite"
    python = environment / "bin" / "python"
    _do([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    _do([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", f"{REPOSITORY}[testing]"])
    suite.mkdir()
    (suite / "test_first.py").write_text(TEST)
    taken = tuple(_first_run(python, environment, suite) for _ in range(context.rounds))
    return [Measure(NAME, METRIC, (), taken)]


def _first_run(python: Path, environment: Path, suite: Path) -> float:
    for root in (environment, suite):
        for kept in root.rglob("*-pytest-*.pyc"):
            kept.unlink()
    began = time.perf_counter()
    _do([str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)])
    return time.perf_counter() - began


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolFailed(f"{' '.join(command)}: {(done.stdout + done.stderr)[-1000:]}")
