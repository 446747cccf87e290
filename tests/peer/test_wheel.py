"""The wheel that is published: the same sources, with the path of a record compiled by mypyc, keeps the same rules.

A machine without a C compiler or Python's headers cannot make one; ottla runs from its sources there.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
COMPILED = "import ottla.storage.log as log; print(log.__file__)"
SPECIFICATION = (
    "tests/rules/broker",
    "tests/rules/net",
    "tests/rules/protocol/test_ordinary_produce.py",
    "tests/rules/replication",
    "tests/rules/storage",
    "tests/wire/test_fetch.py",
    "tests/wire/test_produce.py",
    "tests/wire/test_clients.py",
)
"""What looks at the compiled modules, from inside and over the wire."""
FOR_SOURCES_ONLY = "planted_mistake or number_of_producers_is_bounded or number_of_proofs_asked_for_is_bounded"
"""Tests that put another function or constant into a module: compiled code does not look for such."""


def can_compile() -> bool:
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return shutil.which("cc") is not None and header.exists()


@pytest.mark.matrix
@pytest.mark.skipif(not can_compile(), reason="a wheel takes a C compiler and Python's headers")
def test_the_compiled_wheel_keeps_the_rules_of_the_sources() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    made = subprocess.run(
        ["make", "wheel", f"VENV={sys.prefix}"], cwd=REPOSITORY, env=plain, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr

    (packages,) = (REPOSITORY / ".wheel" / "env" / "lib").glob("python*/site-packages")
    with_wheel = {**plain, "PYTHONPATH": str(packages)}  # before the sources, which are installed as they lie
    asked = subprocess.run(
        [sys.executable, "-c", COMPILED], cwd=REPOSITORY, env=with_wheel, capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip().endswith(sysconfig.get_config_vars()["EXT_SUFFIX"])

    choice = ["-q", "-p", "no:cacheprovider", "-k", f"not ({FOR_SOURCES_ONLY})", *SPECIFICATION]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *choice],
        cwd=REPOSITORY,
        env=with_wheel,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
