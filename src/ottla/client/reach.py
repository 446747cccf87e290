"""A cluster as it is handed from process to process: its addresses, and the file that says how its door is opened.

Theory of operation. A pipeline has many processes (a driver, whatever plans its batches, tasks), and what is handed on
between them lies where others look: options of a query in Spark's pages, properties of its jobs, checkpoints, command
lines. So no secret travels. Kafka's client settings (`security.protocol`, `sasl.*`, `ssl.*`) are in a properties file
for its owner's eyes only, and a `Reach` names it; whoever opens a connection reads it there. The file is the user's
own, or one that `kept` made: in a folder of this process, gone with it.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.addresses import parse_bootstrap
from ottla.client.security import PLAINTEXT, Security, security, settings_of

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import Cluster

SECURED: Final = ("security.", "ssl.", "sasl.")
"""Beginnings of the names that say how a door is opened."""
_FOLDER: Final = "ottla-clients-"
_OF_PROCESS: Final = re.compile(rf"{_FOLDER}(\d+)-.*")


class Reach(NamedTuple):
    servers: str
    settings_file: str = ""
    """Kafka's client settings; empty: plain text, and nobody logs in."""

    @classmethod
    def of(cls, servers: str, settings: Mapping[str, str]) -> Reach:
        """Settings that have nothing to do with security are left to others. Raises SecurityRefused."""
        own = secured(settings)
        if security(own) == PLAINTEXT:
            return cls(servers)
        return cls(servers, kept(own))

    def security(self) -> Security:
        """Raises SecurityRefused, also where the file cannot be read: on a Spark cluster every machine needs it."""
        return security(secured(settings_of(Path(self.settings_file)))) if self.settings_file else PLAINTEXT

    def cluster(self, *, client_id: str = "ottla", timeout_s: float = 30.0, patient: bool = False) -> Cluster:
        """Not connected yet: the first request does that. Raises ValueError for what cannot be an address, and
        SecurityRefused."""
        from ottla.client.blocking.cluster import Cluster  # noqa: PLC0415  who only hands it on needs no sockets

        return Cluster(
            parse_bootstrap(self.servers),
            client_id=client_id,
            timeout_s=timeout_s,
            patient=patient,
            security=self.security(),
        )


def secured(settings: Mapping[str, str]) -> dict[str, str]:
    """Those that say how the door is opened."""
    return {name: str(value) for name, value in settings.items() if name.startswith(SECURED)}


# Files.

_folders: dict[int, Path] = {}
"""By process: a fork makes its own."""


def kept(settings: Mapping[str, str]) -> str:
    """The path of a file with these settings, which is there as long as this process. The same settings have the same
    file, so that connections can be shared."""
    from ottla.model.properties.file import format_properties  # noqa: PLC0415  for who has secrets

    content = format_properties(dict(sorted(settings.items()))).encode()
    path = _folder() / f"{hashlib.sha256(content).hexdigest()[:16]}.properties"
    if not path.exists():
        write_private(path, content)
    return str(path)


def write_private(path: Path, content: bytes) -> None:
    """For its owner's eyes only, and whole: another process may read it at any time."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    part.replace(path)


def _folder() -> Path:
    pid = os.getpid()
    found = _folders.get(pid)
    if found is None or not found.is_dir():
        _sweep()
        found = _folders[pid] = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{pid}-"))
        atexit.register(_remove, found, pid)
    return found


def _remove(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Folders of ours whose process was killed before it could remove them."""
    for entry in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        match = _OF_PROCESS.fullmatch(entry.name)
        with suppress(OSError):
            if match and entry.stat().st_uid == os.getuid() and not _is_alive(int(match[1])):
                shutil.rmtree(entry, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
