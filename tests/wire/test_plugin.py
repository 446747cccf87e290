"""The pytest plugin, in an environment where nothing was installed but ottla and pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FIRST_TEST = """
import sys


def test_first(kafka):
    assert kafka.bootstrap_servers
    rewritten = [
        name
        for name, module in sys.modules.items()
        if name.startswith("ottla") and "Assertion" in type(module.__spec__.loader).__name__
    ]
    assert rewritten == []
    assert "Assertion" in type(sys.modules["pytest_ottla"].__spec__.loader).__name__
"""
"""It takes a second longer to start if pytest has to rewrite all of ottla for it."""


class Environment:
    """One that `pip install '.[testing]'` has just filled."""

    def __init__(self, directory: Path) -> None:
        self.python = directory / "bin" / "python"
        self._plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._do(sys.executable, "-m", "venv", "--without-pip", directory)
        self.pip("install", f"{REPOSITORY}[testing]")
        (self.packages,) = directory.glob("lib/python*/site-packages")

    def pip(self, *words: str) -> str:
        return self._do(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", self.python, *words)

    def pytest(self, suite: Path) -> str:
        return self._do(self.python, "-m", "pytest", "-p", "no:cacheprovider", suite)

    def _do(self, *command: str | Path) -> str:
        done = subprocess.run(command, env=self._plain, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.matrix
def test_the_plugin_is_a_distribution_that_comes_and_goes_with_ottla_and_pytest_leaves_ottla_as_it_is(
    tmp_path: Path,
) -> None:
    environment = Environment(tmp_path / "environment")
    assert "pytest-ottla" in environment.pip("list")
    environment.pip("check")

    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "test_first.py").write_text(FIRST_TEST)
    assert "1 passed" in environment.pytest(suite)

    environment.pip("uninstall", "--yes", "ottla")
    assert [path.name for path in environment.packages.iterdir() if "ottla" in path.name] == []
