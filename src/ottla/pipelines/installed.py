"""What Spark needs of this machine: Python packages and Java."""
# ruff: noqa: PLC0415  only who runs an application pays for it

import re
from typing import Final

OLDEST_JAVA: Final = 17
INSTALL: Final = "make streams, or pip install '.[streams]', in a clone of ottla"


class CannotRun(Exception):
    """Something that Spark needs is not on this machine. The text says what to install."""


def check_spark() -> None:
    """Raises CannotRun with what to install, before Spark gets to raise something less clear."""
    from importlib.util import find_spec

    missing = [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]
    if missing:
        raise CannotRun(f"{', '.join(missing)} not installed: {INSTALL}")
    version = java_version()
    if version is None:
        raise CannotRun(f"Java was not found: Spark needs Java {OLDEST_JAVA} or newer (JAVA_HOME or java on the PATH)")
    if version < OLDEST_JAVA:
        raise CannotRun(f"Java {version} is too old: Spark needs Java {OLDEST_JAVA} or newer (JAVA_HOME names another)")


def java_version() -> int | None:
    """The major version of the Java that Spark will start, from its `release` file when there is one: no JVM starts."""
    import os
    import shutil
    from pathlib import Path

    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else Path(shutil.which("java") or "")
    if not program.is_file():
        return None
    release = program.resolve().parent.parent / "release"
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else _asked_version(str(program))
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def _asked_version(program: str) -> str:
    import subprocess

    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=30)
    return done.stderr + done.stdout
