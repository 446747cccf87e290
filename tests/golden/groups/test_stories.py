"""Groups, told as stories: what is asked, what goes into `__consumer_offsets`, what is answered and when."""

from pathlib import Path
from typing import Any

from ottla.coordinator.records import CoordinatorRecord
from ottla.model.ids import uuid_text
from ottla.protocol import messages as m
from tests.golden.transcripts import compare, shown
from tests.rules.coordinator.group.scene import Scene, Waiting, assigned, topic_id

HERE = Path(__file__).parent


class Story:
    def __init__(self, **settings: Any) -> None:
        self.scene = Scene(**settings)
        self.lines: list[str] = []
        self._waiting: dict[str, Waiting] = {}
        self._told = 0
        self._note()

    def say(self, *text: str) -> None:
        self.lines += ["", *(f"# {line}" for line in text)]

    def ask(self, who: str, what: str, reply: Any) -> None:
        """`reply` is what the scene gave: an answer, or one that waits."""
        self.lines.append(f"{who}: {what}")
        self._note()
        if isinstance(reply, Waiting):
            self.lines.append("  waits")
            self._waiting[who] = reply
        else:
            self.lines.append(f"  -> {who}  {_answer(reply)}")
        self._hear()

    def wait(self, millis: int) -> None:
        self.lines.append(f"after {millis} ms")
        self.scene.pass_time(millis)
        self._note()
        self._hear()

    def restart(self) -> None:
        self.lines.append("another broker takes over, with the log alone")
        self.scene.restart()
        self._note()

    def _note(self) -> None:
        for record, _ in self.scene.log[self._told :]:
            self.lines.append(f"  log {_record(record)}")
        self._told = len(self.scene.log)

    def _hear(self) -> None:
        for who, reply in list(self._waiting.items()):
            if reply.answer is not None:
                self.lines.append(f"  -> {who}  {_answer(reply.answer)}")
                del self._waiting[who]


def _record(record: CoordinatorRecord) -> str:
    value = "gone" if record.value is None else _plain(shown(record.value))
    return f"{_plain(shown(record.key))} = {value}".replace("ConsumerGroup", "").replace("GroupMetadata", "Metadata")


def _plain(text: str) -> str:
    """Ids of topics by their names, blobs as what they say."""
    found = text.replace(uuid_text(topic_id("orders")), "orders")
    for blob, meaning in _BLOBS.items():
        found = found.replace(repr(blob), meaning)
    return found


_SUBSCRIPTION = b"\0\1" + m.ConsumerProtocolSubscription(topics=["orders"]).encode(1)
_BLOBS = {_SUBSCRIPTION: "<subscribed to orders>", b"0": "<0 and 1>", b"1": "<2 and 3>"}


def _answer(reply: Any) -> str:
    if isinstance(reply, m.ConsumerGroupHeartbeatResponse):
        given = assigned(reply)
        own = "" if given is None else f", owns {given.get('orders', [])}"
        return f"{_error(reply)}epoch {reply.member_epoch}{own}"
    if hasattr(reply, "name"):
        return str(reply.name)
    if isinstance(reply, list):
        return ", ".join(each.name for each in reply)
    return _plain(shown(reply))


def _error(reply: Any) -> str:
    return f"error {reply.error_code}: {reply.error_message}, " if reply.error_code else ""


def test_two_consumers_share_a_topic_by_the_classic_protocol() -> None:
    story = Story(initial_rebalance_delay=3_000)
    scene = story.scene
    story.say("A new member is told its id first, and comes back with it (KIP-394).")
    story.ask("a", "joins without an id", first := scene.join())
    a = first.member_id
    story.ask("a", f"joins as {a}", scene.join(member=a))
    story.say("The first generation waits for others (group.initial.rebalance.delay.ms).")
    b = scene.join().member_id
    story.ask("b", f"joins as {b}", scene.join(member=b))
    story.wait(6_000)
    story.say("The leader of the members assigns; the others wait for what it says. Only then it is in the log.")
    story.ask("b", "syncs", scene.sync(b, 1))
    story.ask("a", "syncs, with the assignment", scene.sync(a, 1, {a: b"0", b: b"1"}))
    story.ask("a", "heartbeats", scene.beat(a, 1))
    story.say("Who leaves makes the others come again.")
    story.ask("b", "leaves", scene.leave(b))
    story.ask("a", "heartbeats", scene.beat(a, 1))
    story.ask("a", f"joins as {a}", scene.join(member=a))
    story.ask("a", "syncs, with the assignment", scene.sync(a, 2, {a: b"0"}))
    story.say("Without a word for its session timeout the last one is gone, and the group is empty.")
    story.wait(10_000)
    compare(HERE / "classic.txt", story.lines)


def test_two_consumers_share_a_topic_by_the_consumer_protocol() -> None:
    story = Story()
    scene = story.scene
    story.say("KIP-848: the coordinator assigns, and members come to it one by one, each with its heartbeats.")
    story.ask("m1", "heartbeats at epoch 0: it joins", scene.heartbeat("m1"))
    story.say(
        "A second one raises the group's epoch. Who shall have what is worked out anew at most once a second",
        "(group.consumer.assignment.interval.ms), and it gets nothing before the first has let go.",
    )
    story.ask("m2", "heartbeats at epoch 0: it joins", scene.heartbeat("m2"))
    story.wait(1_000)
    story.ask("m1", "heartbeats, owning 0 to 3", scene.heartbeat("m1", 2, owned={"orders": [0, 1, 2, 3]}))
    story.ask("m2", "heartbeats", scene.heartbeat("m2", 2, owned={}))
    story.ask("m1", "heartbeats, owning 0 and 1", scene.heartbeat("m1", 2, owned={"orders": [0, 1]}))
    story.ask("m2", "heartbeats", scene.heartbeat("m2", 3, owned={}))
    story.say("A commit may be as old as the assignment of its partition, and no older (KIP-1251).")
    story.ask("m1", "commits offset 8 of orders-0 at epoch 2", scene.commit(8, member="m1", generation=2))
    story.ask("m2", "commits offset 9 of orders-2 at epoch 2", scene.commit(9, member="m2", generation=2, partition=2))
    story.say("Another broker takes over: the log has all of it, and everybody a full session.")
    story.restart()
    story.wait(30_000)
    story.ask("m2", "heartbeats", scene.heartbeat("m2", 3, owned={"orders": [2, 3]}))
    story.say("m1 is silent for its session timeout; m2 gets the rest.")
    story.wait(20_000)
    story.ask("m2", "heartbeats", scene.heartbeat("m2", 3, owned={"orders": [2, 3]}))
    compare(HERE / "consumer.txt", story.lines)
