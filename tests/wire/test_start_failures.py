"""A node that cannot start says in one line why, and what to do; it leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import Ottla, free_ports


def refusal(*words: str) -> str:
    """What `ottla start` says before it gives up."""
    command = [sys.executable, "-m", "ottla", "start", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


@pytest.fixture
def port() -> str:
    return str(free_ports(1)[0])


def test_a_port_in_use(tmp_path: Path) -> None:
    with Ottla(tmp_path / "first") as node:
        second = tmp_path / "second"
        assert refusal("--port", str(node.port), "--data", str(second)) == (
            f"ottla cannot start: cannot listen on 127.0.0.1:{node.port}: another process does. "
            "Stop it, or choose another port with --port N (with a file: in its listeners).\n"
        )
        assert not second.exists()


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine(tmp_path: Path, port: str, host: str) -> None:
    said = refusal("--host", host, "--port", port, "--data", str(tmp_path / "data"))
    assert said.startswith(
        f"ottla cannot start: cannot listen on {host}:{port}: {host} is not an address of this machine. "
        "Choose one that is with --host ADDRESS"
    )


def test_a_directory_in_use(tmp_path: Path, port: str) -> None:
    with Ottla(tmp_path / "first") as node:
        assert refusal("--port", port, "--data", str(node.data)) == (
            f"ottla cannot start: log directory {node.data} is in use by another node. "
            "Stop that one, or choose another directory.\n"
        )


def test_a_directory_that_cannot_be_made(tmp_path: Path, port: str) -> None:
    (tmp_path / "file").write_text("not a directory")
    for path, why in (("file", "File exists"), ("file/below", "Not a directory")):
        assert refusal("--port", port, "--data", str(tmp_path / path)) == (
            f"ottla cannot start: log directory {tmp_path / path}: cannot be opened: {why}. "
            "Make it usable, take it out of log.dirs, or choose another with --data or log.dirs.\n"
        )


def test_a_directory_of_another_node(tmp_path: Path, port: str) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=ottlaTestClusterId0000\nnode.id=7\n")
    said = refusal("--port", port, "--data", str(tmp_path))
    assert said == f"ottla cannot start: {tmp_path} belongs to node 7, but node.id is 1.\n"
