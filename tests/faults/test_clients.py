"""What the harness makes of clients in other processes, and how it times them."""

import sys
from pathlib import Path

from ottla.testing.checkers import Action, Kind, Operation, Send
from tests.faults.clients import ForeignFollower, ForeignSender
from tests.faults.faults import Blow
from tests.faults.run import longest_after, waits_after

WRITER = """
import sys
late = []
for line in sys.stdin:
    _, partition, value, padding = line.split()
    if value == "13":
        print("failed 13 it brings bad luck", flush=True)
    elif value == "99":
        sys.exit(1)
    elif value == "7":
        late.append("ok 7 7")
    elif value == "5":
        print("ok 5 -1", flush=True)
    else:
        print("ok", value, int(partition) * 100 + int(value), flush=True)
for answer in late:
    print(answer)  # what is under way is decided when nothing more is to be sent
"""
READER = """
import sys
for line in sys.stdin:
    print("assigned" if line.startswith("assign") else "polled 0:5:50 1:3:31", flush=True)
"""


class Writing:
    def __init__(self, directory: Path) -> None:
        self.sender = ForeignSender("test writer", [sys.executable, "-c", WRITER], directory / "log")
        self.told: dict[int, tuple[int | None, str]] = {}

    def send(self, partition: int, value: int) -> None:
        self.sender.send(partition, value, lambda offset, said: self.told.update({value: (offset, said)}))

    def until_told(self, value: int) -> None:
        while value not in self.told:
            self.sender.serve(0.1)


def test_answers_of_a_child_find_their_sends_in_any_order(tmp_path: Path) -> None:
    writing = Writing(tmp_path)
    for partition, value in ((0, 7), (2, 8), (1, 9)):
        writing.send(partition, value)
    writing.until_told(9)
    assert writing.told == {8: (208, ""), 9: (109, "")}
    writing.sender.finish()
    assert writing.told[7] == (7, "")
    assert not writing.sender.broken


def test_a_record_may_be_acknowledged_without_its_offset(tmp_path: Path) -> None:
    writing = Writing(tmp_path)
    writing.send(0, 5)
    writing.until_told(5)
    assert writing.told == {5: (None, "")}
    writing.sender.finish()
    assert not writing.sender.broken


def test_a_child_that_failed_a_send_is_to_be_replaced(tmp_path: Path) -> None:
    writing = Writing(tmp_path)
    writing.send(0, 13)
    writing.until_told(13)
    assert writing.told == {13: (None, "it brings bad luck")}
    assert "bad luck" in writing.sender.broken
    writing.sender.finish()


def test_what_a_dead_child_had_under_way_is_of_unknown_fate(tmp_path: Path) -> None:
    writing = Writing(tmp_path)
    writing.send(0, 7)
    writing.send(0, 99)
    while not writing.sender.broken:  # the pipe breaks some time after the child is gone
        writing.send(0, 1)
        writing.sender.serve(0.01)
    writing.sender.finish()
    assert writing.told[7][0] is None
    assert writing.told[99][0] is None


def test_a_poll_of_a_child_is_a_line(tmp_path: Path) -> None:
    follower = ForeignFollower("test reader", [sys.executable, "-c", READER], tmp_path / "log")
    follower.assign(near_end=True)
    assert follower.poll() == [(0, 5, 50), (1, 3, 31)]
    follower.close()


def sent(partition: int, invoked_s: float, completed_s: float, outcome: Kind = Kind.OK) -> Operation:
    steps = (Send(f"load-{partition}", int(invoked_s * 1000), 0),)
    return Operation(1, Action.SEND, outcome, steps, invoked=int(invoked_s * 1e9), completed=int(completed_s * 1e9))


BLOWS = [Blow("kill", "", int(10e9)), Blow("kill", "", int(20e9))]


def test_a_cluster_is_writable_when_every_partition_has_taken_what_was_sent_after_the_blow() -> None:
    history = [sent(0, 9.5, 12), sent(0, 10.1, 10.2), sent(1, 10.5, 11.5), sent(0, 20.1, 20.5), sent(1, 20.1, 21)]
    assert waits_after(BLOWS, history) == [1.5, 1.0]


def test_the_longest_wait_counts_from_the_blow_and_under_the_blow_that_caused_it() -> None:
    history = [
        sent(0, 1, 9),  # before all of it
        sent(0, 9.5, 12),  # under way when it struck: 2 s
        sent(0, 10.1, 10.2),
        sent(1, 13, 17),  # later, when the node came back: 4 s
        sent(1, 14, 19.9, Kind.INFO),  # never acknowledged
        sent(0, 19, 26),  # until the second blow 1 s, and 6 s after it
    ]
    assert longest_after(BLOWS, history) == [7.0, 6.0]
