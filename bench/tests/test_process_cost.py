"""What processes cost is not forgotten when they end."""

import subprocess
import sys

from bench.process_cost import Meter, process_tree
from tests.support.patience import eventually

USED_SECONDS = 0.2
"""Half of what is used: the kernel tells whole ticks."""
CHILD = f"""
import time
while time.process_time() < 2 * {USED_SECONDS}: pass
print("done", flush=True)
input()
"""
PARENT = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {CHILD!r}])
signal.pause()
"""


def test_what_a_child_used_still_counts_when_it_is_gone_and_nobody_has_waited_for_it() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        try:
            assert parent.stdout.readline() == "done\n"
            meter = Meter(parent.pid)
            assert meter.total() >= USED_SECONDS
            parent.stdin.close()
            eventually(lambda: process_tree(parent.pid) == [parent.pid], "the child's end")
            assert meter.total() >= USED_SECONDS
        finally:
            parent.kill()
