"""Where Apache Kafka's jars are. Owns the download: Maven copies what pom.xml names into a cache, once."""

import os
import shutil
import subprocess
from pathlib import Path

KAFKA_VERSION = "4.3.1"
HERE = Path(__file__).parent
LOG4J = HERE / "log4j2.xml"
JAVA_SOURCES = HERE / "java"


class JarsMissing(RuntimeError):
    """Apache Kafka cannot be had here."""


def jar_directory() -> Path:
    """The cache; OTTLA_KAFKA_JARS points to another one."""
    chosen = os.environ.get("OTTLA_KAFKA_JARS")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "ottla" / f"kafka-{KAFKA_VERSION}"


def fetch_jars() -> Path:
    """Returns the directory of the jars, filling it through Maven if it is empty."""
    return _fetched(jar_directory(), HERE / "pom.xml", ("kafka_2.13", "kafka-tools"))


def mirror_jars() -> Path:
    """The same for MirrorMaker."""
    directory = jar_directory().with_name(f"mirror-maker-{KAFKA_VERSION}")
    return _fetched(directory, JAVA_SOURCES / "mirror-maker.xml", ("connect-mirror", "connect-runtime"))


def connect_jars() -> Path:
    """The same for Connect and its file connectors."""
    directory = jar_directory().with_name(f"connect-{KAFKA_VERSION}")
    return _fetched(directory, JAVA_SOURCES / "connect.xml", ("connect-file", "connect-runtime"))


def debezium_jars() -> Path:
    """The same for Debezium's connectors, in Connect."""
    directory = jar_directory().with_name("debezium-3.4.0")
    return _fetched(directory, JAVA_SOURCES / "debezium.xml", ("connect-runtime",))


def _fetched(directory: Path, pom: Path, jars: tuple[str, ...]) -> Path:
    if _complete(directory, jars):
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsMissing(
            f"Apache Kafka's jars are not in {directory} and mvn is not there to fetch them; install Maven"
        )
    directory.mkdir(parents=True, exist_ok=True)
    command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run([*command, f"-DoutputDirectory={directory}"], capture_output=True, text=True, check=False)
    if done.returncode != 0 or not _complete(directory, jars):
        raise JarsMissing(f"mvn could not fetch Apache Kafka's jars:\n{done.stdout}{done.stderr}")
    return directory


def java_command(
    *arguments: str, heap: str = "-Xmx512m", options: tuple[str, ...] = (), jars: Path | None = None
) -> list[str]:
    """A `java` call with Kafka's class path, or another; `arguments` begin with a class name or a .java file."""
    logging = f"-Dlog4j2.configurationFile={LOG4J}"
    return ["java", *heap.split(), *options, logging, "-cp", f"{jars or jar_directory()}/*", *arguments]


def _complete(directory: Path, jars: tuple[str, ...]) -> bool:
    return all((directory / f"{name}-{KAFKA_VERSION}.jar").exists() for name in jars)
