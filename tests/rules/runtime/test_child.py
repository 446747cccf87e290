"""A process that another one owns, with a real one."""

import os
import signal
import threading
import time

import pytest

from ottla.runtime.child import Backoff, Child, Died, Unavailable

ECHO = "tests.support.echo"


def test_it_is_started_by_the_first_message_and_answers_one_after_the_other() -> None:
    child = Child("the echo", ECHO)
    try:
        first = child.ask(("pid",))
        assert first != os.getpid()
        assert [child.ask(("say", word)) for word in ("a", "b" * 1_000_000)] == ["a", "b" * 1_000_000]
        assert child.ask(("pid",)) == first
    finally:
        child.close()


def test_it_was_never_started_if_nobody_asked() -> None:
    child = Child("the echo", "ottla.no_such_module")
    with pytest.raises(Died, match="the echo is not running"):
        child.receive()
    child.close()
    with pytest.raises(Died, match="told to stop"):
        child.send("x")


def test_its_death_is_told_to_whoever_waits_and_the_next_message_starts_another_after_the_pause() -> None:
    child = Child("the echo", ECHO, backoff=Backoff(first=0.3))
    try:
        first = child.ask(("pid",))
        with pytest.raises(Died, match="the echo's process ended with -9"):
            child.ask(("kill",))
        died = time.monotonic()
        second = child.ask(("pid",))
        assert second != first
        assert time.monotonic() - died >= 0.3
    finally:
        child.close()


def test_one_that_dies_unasked_is_told_to_a_thread_in_receive() -> None:
    child = Child("the echo", ECHO)
    told: list[str] = []

    def watch() -> None:
        try:
            child.receive()
        except Died as death:
            told.append(str(death))

    try:
        pid = child.ask(("pid",))
        assert isinstance(pid, int)
        watcher = threading.Thread(target=watch)
        watcher.start()
        os.kill(pid, signal.SIGTERM)
        watcher.join(60)
        assert told == ["the echo's process ended with -15"]
    finally:
        child.close()


@pytest.mark.parametrize("patience_s", [0.0, 60.0], ids=["killed", "ended by itself"])
def test_what_it_started_itself_goes_with_it(patience_s: float) -> None:
    """A JVM takes longer to end than the process that started it."""
    child = Child("the echo", ECHO)
    grandchild = child.ask(("start",))
    assert isinstance(grandchild, int)
    child.close(patience_s)
    deadline = time.monotonic() + 60
    while _is_alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(grandchild)


def test_closed_with_patience_it_may_end_by_itself() -> None:
    child = Child("the echo", ECHO)
    path = child.ask(("leave a note",))
    assert isinstance(path, str)
    child.close(patience_s=60)
    with open(path) as note:
        assert note.read() == "left in good order"
    os.unlink(path)


def test_what_it_prints_is_no_message() -> None:
    child = Child("the echo", ECHO)
    try:
        assert child.ask(("print", "noise")) == "printed"
    finally:
        child.close()


def test_a_system_without_room_for_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with pytest.raises(Unavailable, match="the echo's process cannot be started"):
        Child("the echo", ECHO).send("x")


def test_the_pause_doubles_up_to_the_longest_and_begins_anew_after_a_long_life() -> None:
    backoff = Backoff(first=1.0, longest=5.0)
    assert [backoff.died(0.1) for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert [backoff.died(5.0), backoff.died(0.1)] == [1.0, 2.0]


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False
