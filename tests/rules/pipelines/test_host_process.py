"""How a Spark host ends when whoever started it does: in order behind a farewell, at once without."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.pipelines.door import FAREWELL, FILE
from tests.support.patience import PATIENCE_SECONDS, eventually


@pytest.mark.parametrize(
    ("last_word", "code"), [(FAREWELL, 0), ("live", -signal.SIGKILL)], ids=["in order", "its owner was killed"]
)
def test_it_ends_with_its_owner(tmp_path: Path, last_word: str, code: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [
            sys.executable,
            "-m",
            "ottla.pipelines.host_process",
            str(tmp_path),
            "local[1]",
            str(theirs.fileno()),
        ]
        host = subprocess.Popen(command, pass_fds=[theirs.fileno()], process_group=0)
        theirs.close()
        eventually((tmp_path / FILE).exists, "a door")
        ours.sendall(last_word.encode())
    assert host.wait(PATIENCE_SECONDS) == code
