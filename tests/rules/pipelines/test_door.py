"""The door of a Spark host: lines of JSON over a local socket."""

import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.door import FILE, LONGEST_LINE, Door, HostClient, HostGone, Refused
from ottla.pipelines.host_process import HostProcess


def answer(request: Mapping[str, Any]) -> object:
    if request.get("do") == "status":
        return {"pid": 7, "jobs": []}
    raise ValueError(f"{request['do']} is nothing to do")


@contextmanager
def opened(directory: Path) -> Iterator[socket.socket]:
    door = Door(directory, answer, (ValueError,))
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(directory / FILE))
            yield client
    finally:
        door.close()


def asked(client: socket.socket, line: bytes) -> bytes:
    client.sendall(line)
    return client.makefile("rb").readline()


def test_an_answer_is_a_line_and_what_is_wrong_is_an_answer_too(tmp_path: Path) -> None:
    with opened(tmp_path) as client:
        assert asked(client, b'{"do": "status"}\n') == b'{"ok": {"pid": 7, "jobs": []}}\n'
        assert asked(client, b'{"do": "dance"}\n') == b'{"error": "dance is nothing to do"}\n'
        assert asked(client, b"[]\n") == b'{"error": "an object is expected, such as {\\"do\\": \\"status\\"}"}\n'
        assert asked(client, b"?\n").startswith(b'{"error": "a line of JSON is expected')


def test_a_line_without_end_closes_the_connection(tmp_path: Path) -> None:
    with opened(tmp_path) as client:
        client.settimeout(10)
        assert asked(client, b"x" * LONGEST_LINE) == b""


def test_the_socket_is_its_owners_and_one_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    with opened(tmp_path):
        assert stat.S_IMODE(os.stat(tmp_path / FILE).st_mode) == 0o600


def test_a_directory_too_deep_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too long for a local socket"):
        Door(tmp_path / ("d" * 100), answer, ())


def test_a_host_is_asked_for_jobs_before_it_has_any_and_needs_no_spark_for_that(tmp_path: Path) -> None:
    with pytest.raises(HostGone, match="no Spark host listens"):
        HostClient(tmp_path)
    process = HostProcess(tmp_path, "local[1]", {})
    with HostClient(tmp_path) as client:
        assert client.status() == {}
        with pytest.raises(Refused, match="there is no job 'copy'; there are none"):
            client.progress("copy")
        with pytest.raises(Refused, match=r"no\.such cannot be imported"):
            client.start("copy", "no.such:copy")
        assert client.status() == {}
        process.close()
    with pytest.raises(HostGone):
        HostClient(tmp_path)
