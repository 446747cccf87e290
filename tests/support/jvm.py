"""Java and Apache Kafka 4.3.1's jars: found, or fetched once with Maven. Also runs classes from them."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

KAFKA_VERSION = "4.3.1"
_BENCH = Path(__file__).parents[2] / "bench"  # its pom and logging settings are shared
# The tools are short-lived: without the second compiler and with the simplest collector they use a third less CPU.
TOOL_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")


def cache() -> Path:
    """Where downloads for the tests are kept between runs."""
    return Path(os.environ.get("OTTLA_CACHE", Path.home() / ".cache" / "ottla"))


def kafka_jars() -> Path:
    """The directory with the jars. Skips the test where there is no Java, or no Maven and no jars either."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    own = cache() / f"kafka-{KAFKA_VERSION}"
    named = os.environ.get("OTTLA_KAFKA_JARS")
    for place in [Path(named)] if named else [own, Path.home() / ".cache" / "peer-kafka"]:
        if (place / f"kafka_2.13-{KAFKA_VERSION}.jar").exists():
            return place
    if shutil.which("mvn") is None:
        pytest.skip(f"mvn is not installed and Apache Kafka's jars are not in {own}")
    _fetch(own)
    return own


def _fetch(target: Path) -> None:
    partial = target.with_suffix(".part")
    command = [
        "mvn",
        "-B",
        "-q",
        "-f",
        str(_BENCH / "pom.xml"),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={partial}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"Maven could not fetch Apache Kafka:\n{done.stdout}{done.stderr}"
    partial.rename(target)


def java(jars: Path, *words: str, flags: Sequence[str] = TOOL_FLAGS, classes: Path | None = None) -> list[str]:
    """The command line that runs a class with Kafka's jars."""
    path = f"{classes}:{jars}/*" if classes else f"{jars}/*"
    return ["java", *flags, f"-Dlog4j2.configurationFile={_BENCH}/log4j2.xml", "-cp", path, *words]


def compiled(jars: Path, source: Path, target: Path) -> Path:
    """The directory with the classes of one Java file."""
    command = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target
