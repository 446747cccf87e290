"""Java and Apache Kafka 4.3.1's jars: found, or fetched once with Maven. Also runs classes from them."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.programs import Dialogue

KAFKA_VERSION = "4.3.1"
_BENCH = Path(__file__).parents[2] / "bench"  # its pom and logging settings are shared
JAVA_SOURCES = Path(__file__).parents[1] / "wire" / "java"
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
        if _complete(place):
            return place
    _fetch(_BENCH / "pom.xml", own)
    assert _complete(own), sorted(own.iterdir())
    return own


def program_jars() -> Path:
    """The directory with Kafka Streams and Connect. Skips the test where they cannot be had."""
    return jars_of("java-programs", JAVA_SOURCES / "pom.xml")


def jars_of(name: str, pom: Path) -> Path:
    """The directory with what a pom asks for. Skips the test where it cannot be had."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    place = built(name, [pom])
    if not place.exists():
        partial = place.with_suffix(f".part{os.getpid()}")
        _fetch(pom, partial)
        finished(partial, place)
    return place


def _fetch(pom: Path, target: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip(f"mvn is not installed and Apache Kafka's jars are not in {target}")
    target.mkdir(parents=True, exist_ok=True)
    command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"Maven could not fetch Kafka:\n{done.stdout}{done.stderr}"


def finished(partial: Path, place: Path) -> None:
    """Another run beside this one may have been faster."""
    try:
        partial.rename(place)
    except OSError:
        if not place.exists():
            raise
        shutil.rmtree(partial)


def _complete(place: Path) -> bool:
    return all((place / f"{name}-{KAFKA_VERSION}.jar").exists() for name in ("kafka_2.13", "kafka-tools"))


def java(jars: Path, *words: str, flags: Sequence[str] = TOOL_FLAGS, classes: Path | None = None) -> list[str]:
    """The command line that runs a class with Kafka's jars."""
    path = f"{classes}:{jars}/*" if classes else f"{jars}/*"
    return ["java", *flags, f"-Dlog4j2.configurationFile={_BENCH}/log4j2.xml", "-cp", path, *words]


def run_alone(name: str, *args: str, flags: Sequence[str] = ()) -> str:
    """The output of a class that needs a JVM to itself, because it ends with it, or for its flags."""
    command = java(kafka_jars(), name, *args, flags=(*TOOL_FLAGS, *flags))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiled(jars: Path, source: Path, *others: Path) -> Path:
    """The directory with the classes of a Java file and those it needs, compiled once for each of their versions."""
    place = built(source.stem, [source, *others])
    if not place.exists():
        partial = place.with_suffix(f".part{os.getpid()}")
        command = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(partial), str(source), *map(str, others)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        finished(partial, place)
    return place


def built(name: str, sources: Sequence[Path]) -> Path:
    """Where something made from exactly these sources is kept, whether it is there already or not."""
    cache().mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    return cache() / f"{name}-{digest}"


class Answer(NamedTuple):
    """What a tool printed, and its exit code."""

    code: int
    out: str
    err: str


class Tools:
    """Apache's command line tools, one after the other in one JVM: each start of a JVM costs a second."""

    def __init__(self) -> None:
        jars = kafka_jars()
        command = java(jars, "Tools", classes=compiled(jars, JAVA_SOURCES / "Tools.java"))
        self._dialogue = Dialogue("the JVM of the tools", command)

    def run(self, tool: str, *args: str, stdin: str = "") -> Answer:
        name = tool if "." in tool else f"org.apache.kafka.tools.{tool}"
        return Answer(**json.loads(self._dialogue.ask(json.dumps({"tool": name, "args": args, "input": stdin}))))

    def must(self, tool: str, *args: str, stdin: str = "") -> str:
        """The output of a tool that has to succeed."""
        answer = self.run(tool, *args, stdin=stdin)
        assert answer.code == 0, f"{tool} {' '.join(args)} ended with {answer.code}:\n{answer.out}{answer.err}"
        return answer.out

    def close(self) -> None:
        self._dialogue.close()
