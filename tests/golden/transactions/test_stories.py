"""Transactions, told as stories: what is asked, what goes into `__transaction_state`, which markers are written."""

from pathlib import Path
from typing import Any

from ottla.coordinator.transaction.machine import Producer
from ottla.coordinator.transaction.shard import WriteMarkers
from ottla.coordinator.transaction.states import TransactionState
from ottla.protocol import messages as m
from tests.golden.transcripts import compare
from tests.rules.coordinator.transaction.scene import P0, P1, TIMEOUT, Scene

HERE = Path(__file__).parent
V1, V2 = 4, 5
"""Versions of EndTxn: from 5 on each transaction ends with a new epoch (KIP-890)."""


class Story:
    def __init__(self, **options: Any) -> None:
        self.scene = Scene(**options)
        self.lines: list[str] = []
        self._told = 0

    def say(self, *text: str) -> None:
        self.lines += ["", *(f"# {line}" for line in text)]

    def ask(self, what: str, reply: Any) -> Any:
        self.lines.append(what)
        self._note()
        self.lines.append(f"  -> {_answer(reply)}")
        return reply

    def mark(self) -> None:
        """All markers that are asked for are written."""
        for markers in self.scene.write_markers():
            kind = "commit" if markers.committed else "abort"
            where = " ".join(f"{each.topic}-{each.partition}" for each in markers.partitions)
            self.lines.append(f"  {kind} markers of epoch {markers.producer.epoch} go to {where}")
        self._note()

    def wait(self, millis: int) -> None:
        self.scene.time += millis
        self.lines.append(f"after {millis} ms")
        self.scene.tick()
        self._note()

    def take_over(self) -> None:
        self.scene = self.scene.restarted()
        self.lines.append("another broker takes over, with the log alone")
        self._told = len(self.scene.journal)
        pending = sum(isinstance(effect, WriteMarkers) for effect in self.scene.effects)
        self.lines.append(f"  {pending} transaction has markers to write")

    def _note(self) -> None:
        for record in self.scene.journal[self._told :]:
            assert isinstance(record.key, m.TransactionLogKey)
            value = record.value
            if value is None:
                self.lines.append(f"  log {record.key.transactional_id} is gone")
                continue
            assert isinstance(value, m.TransactionLogValue)
            state = TransactionState(value.transaction_status).title
            topics = " ".join(f"{t.topic}-{p}" for t in value.transaction_partitions or () for p in t.partition_ids)
            self.lines.append(f"  log {state}, producer {value.producer_id} epoch {value.producer_epoch} [{topics}]")
        self._told = len(self.scene.journal)


def _answer(reply: Any) -> str:
    if hasattr(reply, "name"):
        return str(reply.name)
    if reply.error:
        return str(reply.error.name)
    return f"producer {reply.producer_id} epoch {reply.epoch}"


def producer(reply: Any) -> Producer:
    return Producer(reply.producer_id, reply.epoch)


def test_a_transaction_is_prepared_before_its_markers_are_written() -> None:
    story = Story()
    scene = story.scene
    mine = producer(story.ask("InitProducerId", scene.init()))
    story.ask("AddPartitionsToTxn orders-0 orders-1", scene.add(mine, P0, P1, version=4))
    story.say("The outcome is in the log before any marker: from here on nobody can change it.")
    ended = story.ask("EndTxn commit", scene.end(mine, committed=True, version=V2))
    story.mark()
    story.say("The next one has the next epoch: a produce that was delayed in the last one is fenced (KIP-890).")
    after = producer(ended)
    story.ask("AddPartitionsToTxn with the old epoch", scene.add(mine, P0, version=4))
    story.ask("AddPartitionsToTxn orders-0", scene.add(after, P0, version=4))
    story.ask("EndTxn abort", scene.end(after, committed=False, version=V2))
    story.mark()
    compare(HERE / "commit_and_abort.txt", story.lines)


def test_a_coordinator_that_dies_between_decision_and_markers_is_replaced() -> None:
    story = Story()
    mine = producer(story.ask("InitProducerId", story.scene.init()))
    story.ask("AddPartitionsToTxn orders-0", story.scene.add(mine, P0, version=4))
    story.ask("EndTxn commit", story.scene.end(mine, committed=True, version=V2))
    story.say("Dead before a single marker was written. The log has the decision.")
    story.take_over()
    story.ask("EndTxn commit, again", story.scene.end(mine, committed=True, version=V2))
    story.mark()
    story.ask("EndTxn commit, again", story.scene.end(mine, committed=True, version=V2))
    compare(HERE / "take_over.txt", story.lines)


def test_a_zombie_is_fenced_and_what_it_left_open_is_aborted() -> None:
    story = Story()
    scene = story.scene
    old = producer(story.ask("InitProducerId of the first instance", scene.init()))
    story.ask("AddPartitionsToTxn orders-0", scene.add(old, P0, version=4))
    story.say("A second instance with the same transactional.id: the open transaction is aborted first.")
    story.ask("InitProducerId of the second instance", scene.init())
    story.mark()
    story.ask("InitProducerId of the second instance, again", scene.init())
    story.ask("EndTxn of the first instance", scene.end(old, committed=True, version=V2))
    story.say("One that does nothing for its timeout is aborted as well.")
    third = producer(story.ask("InitProducerId", scene.init()))
    story.ask("AddPartitionsToTxn orders-1", scene.add(third, P1, version=4))
    story.wait(TIMEOUT + 1)
    story.mark()
    story.ask("EndTxn commit, too late", scene.end(third, committed=True, version=V2))
    compare(HERE / "fencing.txt", story.lines)
