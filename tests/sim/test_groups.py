"""The group core under seeded schedules: clients that lose answers, come late, die; a coordinator that restarts.

What is checked after every step: no partition is owned twice in one epoch, and committed offsets never go back on their
own, neither by a rebalance nor by a restart.
"""

from random import Random
from typing import Any

import pytest

from ottla.model.errors import Errors
from ottla.model.ids import Millis
from tests.rules.coordinator.group.scene import Scene, Waiting, assigned, given, subscription, told
from tests.support.examples import seeds

SEEDS = 300
STEPS = 120
PARTITIONS = 6


class Ledger:
    """Who reads what, by the clients' own word, and what they have committed."""

    def __init__(self) -> None:
        self.owners: dict[int, str] = {}
        self.committed: dict[int, int] = {}

    def holds(self, member: str, partitions: list[int]) -> None:
        for partition in partitions:
            owner = self.owners.get(partition)
            assert owner in (None, member), f"partition {partition} is given to {member} while {owner} reads it"
        for partition in [p for p, owner in self.owners.items() if owner == member]:
            del self.owners[partition]
        self.owners.update(dict.fromkeys(partitions, member))

    def gone(self, member: str) -> None:
        self.holds(member, [])


class ConsumerClient:
    """As a client of the consumer protocol does: reports what it holds, takes what it is told, loses answers."""

    def __init__(self, name: str, scene: Scene, ledger: Ledger, dice: Random) -> None:
        self.name = name
        self.scene = scene
        self.ledger = ledger
        self.dice = dice
        self.epoch = 0
        self.held: list[int] = []
        self.full = True

    def step(self) -> None:
        if self.epoch > 0 and self.held and self.dice.random() < 0.5:
            self.commit()
        fields: dict[str, Any] = {}
        if self.epoch and (self.full or self.dice.random() < 0.5):
            fields = {"owned": {"orders": self.held} if self.held else {}}
            if self.full:
                fields |= {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": ["orders"]}
        elif not self.epoch:
            fields = {"rebalance_timeout_ms": 20_000}
        response = self.scene.heartbeat(self.name, self.epoch, **fields)
        if self.dice.random() < 0.15:
            self.full = True  # the answer is lost: a client says everything again
            return
        self.full = False
        if response.error_code:
            assert response.error_code in (
                Errors.UNKNOWN_MEMBER_ID,
                Errors.FENCED_MEMBER_EPOCH,
                Errors.GROUP_ID_NOT_FOUND,
            ), Errors(response.error_code)
            self.abandon()
            return
        self.epoch = response.member_epoch
        told_now = assigned(response)
        if told_now is not None:
            self.held = told_now.get("orders", [])
            self.ledger.holds(self.name, self.held)

    def commit(self) -> None:
        partition = self.dice.choice(self.held)
        offset = self.ledger.committed.get(partition, 0) + 1
        error = self.scene.commit(offset, member=self.name, generation=self.epoch, partition=partition)
        if not error:
            self.ledger.committed[partition] = offset

    def abandon(self) -> None:
        self.epoch, self.held, self.full = 0, [], True
        self.ledger.gone(self.name)

    def leave(self) -> None:
        if self.epoch:
            self.abandon_first()
            self.scene.heartbeat(self.name, -1)
            self.epoch = 0

    def abandon_first(self) -> None:
        self.held = []
        self.ledger.gone(self.name)


class ClassicClient:
    """As an eager client of the classic protocol does: lets everything go, joins, syncs, reads, beats."""

    def __init__(self, name: str, scene: Scene, ledger: Ledger, dice: Random) -> None:
        self.name = name
        self.scene = scene
        self.ledger = ledger
        self.dice = dice
        self.member = ""
        self.generation = -1
        self.waiting: Any = None
        self.doing = "join"
        self.held: list[int] = []

    def step(self) -> None:
        if self.waiting is not None:
            answer = told(self.waiting)
            if answer is None:
                return
            self.waiting = None
            self.take(answer)
        elif self.doing == "join":
            self.let_go()
            self.ask(self.scene.join(member=self.member, session=10_000, rebalance=20_000))
        elif self.doing == "sync":
            self.ask(self.scene.sync(self.member, self.generation, self.assignments))
        else:
            self.live()

    def ask(self, reply: Any) -> None:
        if isinstance(reply, Waiting):
            self.waiting = reply
        else:
            self.take(reply)

    def take(self, answer: Any) -> None:
        error = Errors(answer.error_code)
        if error:
            if error == Errors.MEMBER_ID_REQUIRED:
                self.member = answer.member_id
            elif error in (Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION, Errors.FENCED_INSTANCE_ID):
                self.member = "" if error == Errors.UNKNOWN_MEMBER_ID else self.member
            else:
                assert error in (Errors.REBALANCE_IN_PROGRESS, Errors.INCONSISTENT_GROUP_PROTOCOL), error
            self.doing = "join"
        elif self.doing == "join":
            self.generation, self.doing = answer.generation_id, "sync"
            ids = [member.member_id for member in answer.members]
            self.assignments = {
                member: assignment(list(range(index, PARTITIONS, len(ids)))) for index, member in enumerate(ids)
            }
        else:
            self.held = given(answer).get("orders", [])
            self.ledger.holds(self.name, self.held)
            self.doing = "live"

    def live(self) -> None:
        if self.held and self.dice.random() < 0.5:
            partition = self.dice.choice(self.held)
            offset = self.ledger.committed.get(partition, 0) + 1
            if not self.scene.commit(offset, member=self.member, generation=self.generation, partition=partition):
                self.ledger.committed[partition] = offset
        error = self.scene.beat(self.member, self.generation)
        if error:
            self.let_go()
            if error == Errors.UNKNOWN_MEMBER_ID:
                self.member = ""
            self.doing = "join"

    def let_go(self) -> None:
        self.held = []
        self.ledger.gone(self.name)

    def abandon(self) -> None:
        self.let_go()
        self.member, self.generation, self.waiting, self.doing = "", -1, None, "join"

    def leave(self) -> None:
        member = self.member
        self.abandon()
        if member:
            self.scene.leave(member)


def assignment(partitions: list[int]) -> bytes:
    from ottla.coordinator.group.classic.consumer_protocol import assignment_bytes  # noqa: PLC0415

    return assignment_bytes({"orders": partitions}, 1)


def play(seed: int, kinds: list[type[ConsumerClient] | type[ClassicClient]]) -> None:
    dice = Random(seed)
    scene = Scene(
        {"orders": PARTITIONS},
        consumer_assignment_interval=Millis(dice.choice((0, 1000))),
        consumer_session_timeout=Millis(10_000),
        initial_rebalance_delay=Millis(dice.choice((0, 3000))),
    )
    ledger = Ledger()
    clients = [dice.choice(kinds)(f"c{index}", scene, ledger, dice) for index in range(dice.randint(1, 5))]
    for _ in range(STEPS):
        client = dice.choice(clients)
        chance = dice.random()
        if chance < 0.02:
            client.leave()
        elif chance < 0.03:
            # Dies without a word: nobody reads its partitions any more, and the coordinator finds out later.
            client.abandon()
            index = clients.index(client)
            clients[index] = dice.choice(kinds)(f"{client.name}'", scene, ledger, dice)
        elif chance < 0.06 and not any(isinstance(one, ClassicClient) and one.waiting for one in clients):
            scene.restart()
        else:
            client.step()
        if dice.random() < 0.3:
            scene.pass_time(dice.choice((10, 500, 2000)))
            drop_the_fenced(scene, clients)
        for partition, offset in ledger.committed.items():
            assert scene.committed(partition=partition) == offset


def drop_the_fenced(scene: Scene, clients: list[Any]) -> None:
    """Whom the coordinator has given up stops reading by itself: its own session timeout is no later."""
    group: Any = scene.shard.state.groups.get("g")
    known = {} if group is None else group.members
    for client in clients:
        member = client.name if isinstance(client, ConsumerClient) else client.member
        if client.held and member not in known:
            client.abandon()


@pytest.mark.parametrize("first", seeds(SEEDS)[::25])
def test_no_partition_is_owned_twice_and_no_commit_is_lost_in_the_consumer_protocol(first: int) -> None:
    for seed in range(first, first + 25):
        play(seed, [ConsumerClient])


@pytest.mark.parametrize("first", seeds(SEEDS)[::25])
def test_commits_survive_the_classic_protocol(first: int) -> None:
    for seed in range(first, first + 25):
        play(seed, [ClassicClient])


def test_the_same_seed_plays_the_same_game() -> None:
    logs = []
    for _ in range(2):
        dice = Random(7)
        scene = Scene({"orders": PARTITIONS}, consumer_assignment_interval=Millis(0))
        ledger = Ledger()
        clients = [ConsumerClient(f"c{index}", scene, ledger, dice) for index in range(3)]
        for _ in range(80):
            dice.choice(clients).step()
        logs.append([repr(record) for record, _ in scene.log])
    assert logs[0] == logs[1]


def test_every_member_ends_up_with_its_share_once_nothing_goes_wrong_any_more() -> None:
    for seed in range(40):
        dice = Random(seed)
        scene = Scene({"orders": PARTITIONS}, consumer_assignment_interval=Millis(1000))
        ledger = Ledger()
        clients = [ConsumerClient(f"c{index}", scene, ledger, dice) for index in range(dice.randint(1, 4))]
        for _ in range(60):
            dice.choice(clients).step()
            scene.pass_time(100)
        for _ in range(10):  # calm: everybody speaks in turn, and every answer arrives
            for client in clients:
                client.dice = Calm()  # type: ignore[assignment]
                client.step()
            scene.pass_time(1000)
        assert sorted(ledger.owners) == list(range(PARTITIONS))
        assert scene.groups() == {"g": ("consumer", "Stable")}


class Calm:
    def random(self) -> float:
        return 0.4

    def choice(self, options: list[int]) -> int:
        return options[0]


def test_a_checker_that_cannot_fail_proves_nothing() -> None:
    ledger = Ledger()
    ledger.holds("a", [1])
    with pytest.raises(AssertionError, match="while a reads it"):
        ledger.holds("b", [1])
    assert subscription("orders")
