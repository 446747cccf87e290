"""OpenSearch 2.19, as Maven brings it: one node without security, in a directory of its own."""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.jvm import jars_of
from tests.support.nodes import free_ports
from tests.support.patience import eventually

_POM = Path(__file__).parent / "opensearch-pom.xml"
_HEAP = "512m"
_PAGE = 10_000
"""Documents in one answer, at most."""


class OpenSearch:
    """A server that runs, until it is told to crash: then it runs again, at the same address."""

    def __init__(self, url: str, command: list[str], environment: Mapping[str, str], output: Path) -> None:
        self.url = url
        self._command = command
        self._environment = environment
        self._output = output
        self._start()

    def crash(self) -> None:
        """kill -9."""
        self.close()
        self._start()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=subprocess.STDOUT, env=self._environment
            )
        try:
            eventually(lambda: self._process.poll() is not None or self.is_up(), "OpenSearch")
            assert self._process.poll() is None, self._output.read_text()
        except BaseException:
            self.close()
            raise

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def documents(self, index: str) -> dict[str, Any]:
        """By their ids."""
        self.ask("POST", f"/{index}/_refresh")
        page = self.ask("GET", f"/{index}/_search?scroll=1m&size={_PAGE}")
        found: dict[str, Any] = {}
        while hits := page["hits"]["hits"]:
            found |= {hit["_id"]: hit["_source"] for hit in hits}
            page = self.ask("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})
        self.ask("DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})
        return found

    def is_up(self) -> bool:
        try:
            return bool(self.ask("GET", "/_cluster/health")["status"] in ("green", "yellow"))
        except (OSError, urllib.error.URLError, ValueError):
            return False


@contextmanager
def opensearch() -> Iterator[OpenSearch]:
    """Skips the test where it cannot be had."""
    # Not in a directory of pytest's, which is closed to others: the server may run as nobody.
    place = tempfile.mkdtemp(prefix="opensearch-")
    try:
        with _running(Path(place)) as server:
            yield server
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _running(directory: Path) -> Iterator[OpenSearch]:
    home = _unpacked(directory)
    config = directory / "config"
    config.mkdir()
    ports = free_ports(2)
    (config / "opensearch.yml").write_text(
        f"discovery.type: single-node\nnetwork.host: 127.0.0.1\nhttp.port: {ports[0]}\ntransport.port: {ports[1]}\n"
        f"path.data: {directory}/data\npath.logs: {directory}/logs\n"
        "cluster.routing.allocation.disk.threshold_enabled: false\n"
    )
    (config / "jvm.options").write_text(f"-Xms{_HEAP}\n-Xmx{_HEAP}\n-XX:+UseSerialGC\n")
    (config / "log4j2.properties").write_text("rootLogger.level = warn\n")
    scratch = directory / "tmp"
    scratch.mkdir()
    command = [str(home / "bin" / "opensearch")]
    if os.geteuid() == 0:  # it refuses to run as root
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        for path in (directory, *directory.rglob("*")):
            shutil.chown(path, 65534, 65534)
    own = {"OPENSEARCH_PATH_CONF": config, "OPENSEARCH_JAVA_HOME": _java_home(), "OPENSEARCH_TMPDIR": scratch}
    environment = {**os.environ, **{name: str(place) for name, place in own.items()}}
    server = OpenSearch(f"http://127.0.0.1:{ports[0]}", command, environment, directory / "output")
    try:
        yield server
    finally:
        server.close()


def _unpacked(directory: Path) -> Path:
    archive = next(jars_of("opensearch", _POM).glob("opensearch-*.zip"))
    with zipfile.ZipFile(archive) as files:
        files.extractall(directory)
    home = next(directory.glob("opensearch-*"))
    for program in (home / "bin").iterdir():
        program.chmod(0o755)
    return home


def _java_home() -> str:
    java = shutil.which("java")
    assert java is not None
    return str(Path(java).resolve().parent.parent)
