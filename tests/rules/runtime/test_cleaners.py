"""The process that cleans, spoken to as a node does, over a real disk."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.model.ids import TopicPartition
from ottla.runtime.child import Died
from ottla.runtime.cleaner.cleaners import Cleaner, CleanerProcess, Pace
from ottla.storage.cleaner import plan
from ottla.storage.cleaner.facts import Facts, LastRecord, Limits, Spent
from ottla.storage.fs import CorruptLog, RealFilesystem
from ottla.storage.log import Log
from ottla.storage.opening import create_log
from ottla.testing.cleaner import CleanerInPlace
from tests.rules.storage.cleaning import COMPACT, ROOMY, put
from tests.rules.storage.scene import NOW, TOPIC_ID
from tests.support.nodes import cleaners_of

PACED = ROOMY._replace(paced=True)


def a_dirty_log(path: Path, batches: int = 20) -> Log:
    """Two closed segments; in each batch the same two keys, and 50 KB."""
    log = create_log(RealFilesystem(), str(path), TopicPartition("table", 0), TOPIC_ID, COMPACT, now=NOW)
    for half in range(2):
        for number in range(batches // 2):
            value = b"%d.%d" % (half, number) + bytes(25_000)
            put(log, (b"a", value), (b"b", value), producer=(7, 0, 2 * (half * batches // 2 + number)))
        log.roll(NOW)
    return log


def facts_of(log: Log, limits: Limits = ROOMY) -> Facts:
    return plan.weigh(log, None, high_watermark=log.log_end_offset, now=NOW).facts(limits, now=NOW)


def at_once(size: int) -> float:
    return 0.0


@contextmanager
def a_process(pace: Pace = at_once) -> Iterator[CleanerProcess]:
    cleaner = CleanerProcess(pace)
    try:
        yield cleaner
    finally:
        cleaner.close()


def kill_when(told: threading.Event, cleaner: Cleaner) -> None:
    told.wait(60)
    cleaner.kill()


def cleaned_by(cleaner: Cleaner, log: Log) -> tuple[object, dict[str, bytes]]:
    """The answers, and the files written."""
    mapped = cleaner.begin(facts_of(log))
    last = {7: LastRecord(19, 0)}
    answers = [mapped, *(cleaner.rewrite(number, last) for number in range(len(mapped.groups)))]
    files = {path.name: path.read_bytes() for path in Path(log.path).glob("*.cleaned")}
    return answers, files


def test_a_process_does_what_is_done_in_place(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path / "table-0")
    in_place = cleaned_by(CleanerInPlace(log.filesystem), log)
    assert in_place[1]
    for path in Path(log.path).glob("*.cleaned"):
        path.unlink()
    with a_process() as cleaner:
        assert cleaned_by(cleaner, log) == in_place
        assert cleaned_by(cleaner, log) == in_place, "the next round of the same process"


def test_what_is_wrong_with_a_log_reaches_the_node_and_the_process_goes_on(tmp_path: Path) -> None:
    damaged, lost, sound = (a_dirty_log(tmp_path / f"{name}-0") for name in ("damaged", "lost", "sound"))
    path = Path(damaged.segments[0].path())
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    Path(lost.segments[0].path()).unlink()
    with a_process() as cleaner:
        with pytest.raises(CorruptLog, match=rf"{path}: the batch at offset 18: its CRC does not match"):
            cleaner.begin(facts_of(damaged))
        with pytest.raises(FileNotFoundError, match=lost.segments[0].path()):
            cleaner.begin(facts_of(lost))
        with pytest.raises(RuntimeError, match="TypeError"):
            cleaner.begin(object())  # type: ignore[arg-type]
        assert len(cleaner.begin(facts_of(sound)).groups) == 1


def test_a_paced_round_tells_what_it_has_read_and_written(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path / "table-0", batches=60)
    told: list[int] = []

    def pace(size: int) -> float:
        told.append(size)
        return 0.0

    with a_process(pace) as cleaner:
        cleaner.begin(facts_of(log, PACED))
    size = sum(segment.size for segment in log.segments)
    assert len(told) == size // (512 << 10)
    assert size - (512 << 10) < sum(told) <= size


def test_a_round_that_waits_can_be_killed(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path / "table-0", batches=60)
    waits = threading.Event()

    def pace(size: int) -> float:
        waits.set()
        return 3600.0

    with a_process(pace) as cleaner:
        killer = threading.Thread(target=kill_when, args=(waits, cleaner))
        killer.start()
        with pytest.raises(Died):
            cleaner.begin(facts_of(log, PACED))
        killer.join()
        with pytest.raises(Died):
            cleaner.begin(facts_of(log))


def test_a_process_is_in_the_session_of_its_node_but_not_in_its_process_group(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path / "table-0", batches=60)
    seen: list[tuple[bool, bool]] = []

    def pace(_: int) -> float:
        (pid,) = cleaners_of(os.getpid())
        seen.append((os.getsid(pid) == os.getsid(0), os.getpgid(pid) == os.getpgid(0)))
        return 0.0

    with a_process(pace) as cleaner:
        cleaner.begin(facts_of(log, PACED))
    assert seen[0] == (True, False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such class")
def test_a_process_that_is_not_starved_runs_only_where_nobody_else_wants_to() -> None:
    with subprocess.Popen([sys.executable, "-c", STANDS_BACK], stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=60)
    assert out.split() == ["19", str(os.SCHED_IDLE)]


def test_a_process_that_was_killed_is_gone_when_the_node_hears_of_it(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path / "table-0", batches=60)

    def pace(size: int) -> float:
        for pid in cleaners_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        return 0.0

    with a_process(pace) as cleaner:
        with pytest.raises(Died, match="ended with -9"):
            cleaner.begin(facts_of(log, PACED))
        assert not cleaners_of(os.getpid())


def test_a_process_that_waits_ends_when_the_node_is_gone(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path / "table-0", batches=60)
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "ottla.runtime.cleaner", str(theirs.fileno())]
    with ours, theirs, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        ours.sendall(pickle.dumps(facts_of(log, PACED)))
        with ours.makefile("rb") as answers:
            assert isinstance(pickle.load(answers), Spent)
        ours.close()
        assert process.wait(60) == 0


STANDS_BACK = """
import os
from ottla.runtime.cleaner.priority import Priority
priority = Priority(0.0)
priority.adapt(1e9)  # as if almost all the time were its own
print(os.nice(0), os.sched_getscheduler(0))
"""

WORKS = """
import sys
from ottla.runtime.cleaner.priority import Priority
from ottla.runtime.cleaner.rounds import Line
from ottla.runtime.parent import Parent
line = Line(Parent.of_this_process(), Priority(0.0))
line.breathe(1 << 20)
print("works", flush=True)
while True:
    line.breathe(1 << 20)
"""


def test_a_process_that_works_ends_when_the_node_is_gone() -> None:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", WORKS, str(theirs.fileno())]
    with ours, theirs, subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"works\n"
        theirs.close()
        ours.close()
        assert process.wait(60) == 0
