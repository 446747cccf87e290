"""Who looks for work takes turns with whoever does it."""

import pickle
import threading
from collections.abc import Sequence
from queue import SimpleQueue

import pytest

from ottla.connect.jobs.looking import Looking, Pause

PATIENCE_S = 60.0


class Script:
    """Gives what it was told to, look by look, and nothing behind that."""

    gather_ms = 0

    def __init__(self, *looks: list[object] | BaseException) -> None:
        self._looks = list(looks)
        self.made = 0

    def look(self, pause: Pause) -> Sequence[object]:
        self.made += 1
        found = self._looks.pop(0) if self._looks else []
        if isinstance(found, BaseException):
            raise found
        return found

    def rest_s(self) -> float:
        return 0.0


class Spark:
    """Takes what is put."""

    def __init__(self, script: Script, *, once: bool = True) -> None:
        self.ended = threading.Event()
        self.given: SimpleQueue[list[bytes]] = SimpleQueue()
        self.looking = Looking(script, self.given.put, self.ended, once=once)
        self.looking.start()

    def taken(self) -> list[object]:
        return [pickle.loads(each) for each in self.given.get(timeout=PATIENCE_S)]


def test_nothing_is_looked_for_until_all_of_the_last_look_is_settled() -> None:
    script = Script(["a", "b"], ["c"])
    spark = Spark(script)
    assert spark.taken() == ["a", "b"]
    assert not spark.looking.is_settled_within(0)
    assert spark.looking.gather([1]) == [], "Spark ran the first of them alone"
    assert spark.looking.gather([2]) == [1, 2]
    assert (script.made, spark.given.empty()) == (1, True)
    spark.looking.settled()
    assert spark.taken() == ["c"]


def test_what_comes_next_is_there_when_spark_asks_for_it() -> None:
    spark = Spark(Script(["a"], ["b"]))
    spark.taken()
    spark.looking.gather([1])
    spark.looking.settled()
    assert not spark.given.empty()


def test_whoever_waits_for_the_last_batch_hears_that_it_is_settled() -> None:
    spark = Spark(Script(["a"]), once=False)
    assert spark.taken() == ["a"]
    spark.ended.set()
    threading.Thread(target=spark.looking.settled).start()
    assert spark.looking.is_settled_within(PATIENCE_S)


def test_whoever_waits_for_the_last_batch_hears_that_it_failed_and_nothing_is_looked_for_again() -> None:
    script = Script(["a"], ["b"])
    spark = Spark(script)
    assert spark.taken() == ["a"]
    spark.looking.given_up()
    assert spark.looking.is_settled_within(0)
    assert spark.looking.join(PATIENCE_S)
    assert (spark.ended.is_set(), script.made) == (True, 1)


def test_once_it_ends_when_nothing_is_found() -> None:
    spark = Spark(Script())
    assert spark.ended.wait(PATIENCE_S)
    assert spark.looking.join(PATIENCE_S)
    assert spark.looking.error is None


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit("enough")], ids=["error", "exit"])
def test_whatever_a_connector_raises_is_the_end(error: BaseException) -> None:
    spark = Spark(Script(error), once=False)
    assert spark.ended.wait(PATIENCE_S)
    assert spark.looking.error is error


def test_one_that_waits_to_try_again_ends_when_it_is_told_to() -> None:
    class Waiting(Script):
        def look(self, pause: Pause) -> Sequence[object]:
            waits.set()
            pause(3600.0)
            return []

    waits = threading.Event()
    spark = Spark(Waiting(), once=False)
    assert waits.wait(PATIENCE_S)
    spark.ended.set()
    assert spark.looking.join(PATIENCE_S)
    assert spark.looking.error is None


def test_one_that_never_returns_is_not_waited_for_without_end() -> None:
    class Hanging(Script):
        def look(self, pause: Pause) -> Sequence[object]:
            never.wait()
            return []

    never = threading.Event()
    spark = Spark(Hanging(), once=False)
    spark.ended.set()
    try:
        assert not spark.looking.join(0.01)
    finally:
        never.set()
