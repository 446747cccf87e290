"""The JVM of a local Spark session, started by us and early.

`spark-submit` runs two shells and a first JVM that works out the command line of the second, which then parses fifteen
thousand classes out of three hundred jars. What that first JVM says is the same each time, so it is asked once for each
installation; and where `ottla streams prepare` has left an archive of those classes (JEP 350), they are mapped.

    ~/.cache/ottla/spark-<installation>/options.json    what Spark's launcher gives to java
    ~/.cache/ottla/spark-<installation>/ottla-*.jar     classes of ours, see `own_classes`
    ~/.cache/ottla/spark-<installation>/ottla-*.jsa     the archive

A JVM can be started before anybody has imported pyspark: `begin` it, do something else, then `connect`. Where Spark is
not as `pip` installs it (a folder `conf`, settings in the environment), all is left to `spark-submit`.
"""
# ruff: noqa: PLC0415  a JVM is begun before pyspark is imported, so that both take place at the same time

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ottla.pipelines import own_classes
from ottla.pipelines.settings import is_local

MAIN: Final = "org.apache.spark.deploy.SparkSubmit"
LAUNCHER: Final = "org.apache.spark.launcher.Main"
OWN_WAYS: Final = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS")
"""Of the environment: whoever sets one wants Spark to be started in a way of theirs."""
FOR_LAUNCHER: Final = (
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.driver.defaultJavaOptions",
)
"""Settings that change the command in ways that are the launcher's to know."""
LIGHT: Final = (
    # A session keeps little between batches. G1 reserves and remembers more than small heaps are worth. With 64 MB to
    # begin with a start was stopped for 0.33 s of 5.4 by eighteen collections, two of them full.
    "-XX:+UseSerialGC",
    "-Xms128m",
    "-XX:NewSize=48m",
    "-XX:MetaspaceSize=128m",
    # The second compiler took 12 of 33 s of CPU until a first result. What is truly hot reaches these within a second.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=10000",
    "-XX:Tier4CompileThreshold=100000",
    "-XX:Tier4BackEdgeThreshold=200000",
    # An archive that lies where it was made for is mapped, and no page of it is this process's own before it is written
    # to. By default all 180 MB of it are moved to an address that nobody can guess, each pointer in it rewritten.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:ArchiveRelocationMode=0",
    # Says nothing where the archive does not fit: the JVM goes on without.
    "-Xshare:auto",
    "-Xlog:cds*=off",
)
NOT_NEEDED: Final = "--add-modules=jdk.incubator.vector"
"""For Spark's machine learning. With it the JVM cannot use its archived modules, and warns."""
DEFAULT_MEMORY: Final = "1g"
"""Spark's own."""
POLL_S: Final = 0.01
PATIENCE_S: Final = 300.0
"""A machine with much else to do is slow."""
LOGS: Final = Path(__file__).with_name("log4j2.properties")


class JvmFailed(Exception):
    """The JVM did not come up. What it said is on standard error."""


@dataclass(frozen=True)
class Installation:
    """A Spark and a Java, and what is kept about them."""

    home: Path
    java: Path

    @classmethod
    def found(cls) -> Installation | None:
        """None where `spark-submit` has to start it."""
        if sys.platform == "win32" or any(os.environ.get(name) for name in OWN_WAYS):
            return None
        spec = find_spec("pyspark")
        given = os.environ.get("SPARK_HOME")
        home = Path(given) if given else None if spec is None or spec.origin is None else Path(spec.origin).parent
        java_home = os.environ.get("JAVA_HOME")
        java = Path(java_home, "bin", "java") if java_home else Path(shutil.which("java") or "")
        if home is None or not java.is_file() or not (home / "jars").is_dir() or (home / "conf").exists():
            return None
        return cls(home, java.resolve())

    @cached_property
    def folder(self) -> Path:
        """Another one for each Spark and Java: an archive fits the jars and the JVM that it was made with."""
        jars = (self.home / "jars").stat().st_mtime_ns
        about = f"{self.home} {jars} {self.java} {self.java.stat().st_mtime_ns}"
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return Path(root, "ottla", f"spark-{hashlib.sha256(about.encode()).hexdigest()[:16]}")

    @property
    def archive(self) -> Path:
        """Another one for other classes of ours: it would not fit, and the JVM says nothing of that."""
        return own_classes.jar_in(self.folder).with_suffix(".jsa")

    def home_for_workers(self, settings: Mapping[str, str]) -> Path:
        """Spark puts its own zip in front of what Python workers import: sources, compiled anew by each of them. Those
        of our own Python have pyspark installed, and are told of a home without any."""
        return self.home if "spark.pyspark.python" in settings else self.folder

    @cached_property
    def class_path(self) -> str:
        """Sorted, as an archive holds for one order only."""
        return os.pathsep.join(sorted(str(each) for each in (self.home / "jars").glob("*.jar")))

    def own_jar(self) -> Path | None:
        """None where it cannot be made: Spark does without."""
        jar = own_classes.jar_in(self.folder)
        if not jar.exists():
            try:
                own_classes.make(jar, self.java, self.class_path)
            except (OSError, subprocess.SubprocessError):
                return None
        return jar

    def options(self) -> list[str]:
        """What Spark's launcher gives to every JVM of this installation, such as --add-opens. Raises OSError."""
        kept = self.folder / "options.json"
        try:
            found: list[str] = json.loads(kept.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            found = self._asked()
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = kept.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps(found), encoding="utf-8")
            draft.replace(kept)
        return found

    def _asked(self) -> list[str]:
        command = [str(self.java), "-Xmx128m", "-cp", self.class_path, LAUNCHER, MAIN, "pyspark-shell"]
        # The version is only used for a class path that we do not take.
        environment = {**os.environ, "SPARK_HOME": str(self.home), "SPARK_SCALA_VERSION": "2.13"}
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=PATIENCE_S)
        words = done.stdout.decode(errors="replace").replace("\n", "").split("\0")
        if MAIN not in words or "-cp" not in words:
            raise OSError(f"Spark's launcher said nothing of use: {done.stderr.decode(errors='replace').strip()}")
        # Behind the class path, in front of the main class; the memory is ours to set.
        between = words[words.index("-cp") + 2 : words.index(MAIN)]
        return [word for word in between if word and not word.startswith(("-Xm", NOT_NEEDED))]

    def command(self, settings: Mapping[str, str], more: Sequence[str]) -> list[str]:
        extra = shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
        memory = settings.get("spark.driver.memory", os.environ.get("SPARK_DRIVER_MEMORY", DEFAULT_MEMORY))
        collector = [word for word in extra if word.startswith("-XX:+Use") and word.endswith("GC")]
        light = [word for word in LIGHT if not (collector and word.endswith("GC"))]
        logs = [f"-Dlog4j2.configurationFile={LOGS}"]  # whoever names another one says so behind it
        archive = [f"-XX:SharedArchiveFile={self.archive}"] if not more and self.archive.exists() else []
        own = self.own_jar()
        if own is not None:
            settings = {**own_classes.SETTINGS, **settings}
        words = [
            str(self.java),
            "-cp",
            # Ours behind Spark's, as an archive holds for whatever begins with the class path it was made with.
            os.pathsep.join([self.class_path, *([] if own is None else [str(own)])]),
            f"-Xmx{memory}",
            *light,
            *logs,
            *archive,
            *more,
            *self.options(),
        ]
        conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        return [*words, *extra, MAIN, *conf, "pyspark-shell"]


class Jvm:
    """A JVM on its way. It ends when this process does: it reads from a pipe that we hold."""

    def __init__(self, installation: Installation, settings: Mapping[str, str], more: Sequence[str] = ()) -> None:
        """Raises OSError."""
        self._folder = tempfile.mkdtemp(prefix="ottla-jvm-")
        self._told = Path(self._folder, "gateway")
        environment = {
            **os.environ,
            "SPARK_HOME": str(installation.home_for_workers(settings)),
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
            "SPARK_CONNECT_MODE": "0",
            "PYTHONHASHSEED": "0",  # as spark-submit has it: workers agree about the hash of a text
            # Spark has a hundred threads, and glibc would keep a heap for each eight of them.
            "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2"),
            "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told),
        }
        self.process = subprocess.Popen(
            installation.command(settings, more),
            stdin=subprocess.PIPE,
            env=environment,
            preexec_fn=_ignore_interrupts,  # noqa: PLW1509  as pyspark does; nothing else runs in between
        )

    def connect(self) -> None:
        """Makes it the one that pyspark uses in this process. Raises JvmFailed."""
        try:
            port, secret = self._gateway()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway

        os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
        try:
            gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        gateway.proc = self.process
        SparkContext._ensure_initialized(gateway=gateway)

    def _gateway(self) -> tuple[int, str]:
        deadline = time.monotonic() + PATIENCE_S
        while not self._told.exists():
            if self.process.poll() is not None:
                raise JvmFailed(f"Java ended with the status {self.process.returncode} before Spark was there")
            if time.monotonic() > deadline:
                raise JvmFailed(f"Java did not start Spark within {PATIENCE_S:.0f} s")
            time.sleep(POLL_S)
        told = self._told.read_bytes()
        return int.from_bytes(told[:4], "big"), told[8:].decode()


def _ignore_interrupts() -> None:
    """Ctrl-C is for us: the JVM ends with the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_begun: list[Jvm] = []
"""At most one: a process has one JVM."""


def begin(master: str, settings: Mapping[str, str], more: Sequence[str] = ()) -> None:
    """Starts the JVM of a local session, unless there is one already or `spark-submit` has to do it."""
    if _begun or not is_local(master) or any(name in settings for name in FOR_LAUNCHER):
        return
    if "pyspark" in sys.modules and _has_gateway():
        return
    installation = Installation.found()
    if installation is None:
        return
    try:
        _begun.append(Jvm(installation, {"spark.master": master, **settings}, more))
    except OSError:  # nowhere to keep the launcher's words, or no launcher: spark-submit knows better
        return


def connect() -> None:
    """Waits for the JVM that was begun, if one was. Raises JvmFailed."""
    if _begun and not _has_gateway():
        _begun[-1].connect()


def end(patience_s: float) -> None:
    """Stops Spark and the JVM that was begun, and waits for its end."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    if context is not None:
        context.stop()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    process = _begun[-1].process
    assert process.stdin is not None
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)


def _has_gateway() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None
