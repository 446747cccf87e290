"""How a broker copies from one leader: which question is asked when."""

from ottla.model.errors import Errors
from ottla.replication.fetch_chain import FetchChain, Later, Turn
from ottla.replication.fetch_session import Question
from ottla.replication.follower import FIRST_PAUSE_MS, Ask

LONGEST_MS = 1_000
SESSION = 7
IDLE: Turn[str] = Turn()


def at(offset: int) -> Ask:
    return Ask(3, offset, 2, 0)


class Scene:
    """Partitions by name, each with what it wants to be asked now."""

    def __init__(self, *partitions: str) -> None:
        self.chain: FetchChain[str] = FetchChain()
        self.wanted: dict[str, Ask | Later | None] = {}
        self.now = 1_000
        for name in partitions:
            self.came(name, at(0))

    def came(self, name: str, wanted: Ask | Later | None) -> None:
        self.wanted[name] = wanted
        self.chain.add(name)

    def turn(self) -> Turn[str]:
        return self.chain.turn(self.now, lambda name, now: self.wanted[name])

    def took(self, name: str, end: int) -> None:
        self.wanted[name] = at(end)
        self.chain.taken(name)


def asks(session_id: int, epoch: int, *offsets: tuple[str, int], forgotten: tuple[str, ...] = ()) -> Question[str]:
    return Question(session_id, epoch, [(name, at(offset)) for name, offset in offsets], list(forgotten))


def test_the_first_fetch_asks_for_all_and_the_next_only_for_what_has_changed() -> None:
    scene = Scene("a", "b")
    assert scene.turn() == Turn(asks(0, 0, ("a", 0), ("b", 0)))
    assert dict(scene.chain.answered(SESSION)) == {"a": at(0), "b": at(0)}
    scene.took("a", 10)
    assert scene.turn() == Turn(asks(SESSION, 1, ("a", 10)))
    assert dict(scene.chain.answered(SESSION)) == {"a": at(10), "b": at(0)}
    assert scene.turn() == Turn(asks(SESSION, 2))  # nothing to say, but the leader must be asked to answer


def test_there_is_one_fetch_at_a_time() -> None:
    scene = Scene("a")
    scene.turn()
    assert scene.turn() == IDLE


def test_one_that_comes_while_a_fetch_waits_travels_by_itself_and_then_with_the_others() -> None:
    scene = Scene("a")
    scene.turn()
    scene.came("b", at(5))
    assert scene.turn() == Turn(express=asks(0, -1, ("b", 5)))
    scene.came("c", at(6))
    assert scene.turn() == IDLE  # one on the express lane at a time
    assert scene.chain.express_answered(well=True) == {"b": at(5)}
    scene.took("b", 7)
    assert scene.turn() == Turn(express=asks(0, -1, ("c", 6), ("b", 7)))  # the chain has not taken b along yet
    scene.chain.answered(SESSION)
    assert scene.turn() == Turn(asks(SESSION, 1, ("b", 7), ("c", 6)))
    assert scene.chain.express_answered(well=True) == {"c": at(6), "b": at(7)}
    assert scene.turn() == IDLE


def test_an_express_fetch_that_failed_leaves_its_partitions_to_the_chain() -> None:
    scene = Scene("a")
    scene.turn()
    scene.came("b", at(5))
    scene.turn()
    scene.chain.express_answered(well=False)
    assert scene.turn() == IDLE
    scene.chain.answered(SESSION)
    assert scene.turn() == Turn(asks(SESSION, 1, ("b", 5)))


def test_one_that_is_to_wait_is_left_out_until_its_moment() -> None:
    scene = Scene("a")
    scene.came("b", Later(1_500))
    assert scene.turn() == Turn(asks(0, 0, ("a", 0)), wake_at=1_500)
    scene.chain.answered(SESSION)
    scene.now, scene.wanted["b"] = 1_499, at(5)
    assert scene.turn() == Turn(asks(SESSION, 1), wake_at=1_500)
    scene.now = 1_500
    assert scene.turn() == Turn(express=asks(0, -1, ("b", 5)))  # a fetch is on its way


def test_one_that_may_be_asked_for_again_does_not_wait_for_its_moment() -> None:
    scene = Scene("a")
    scene.came("b", Later(9_000))
    scene.turn()
    scene.chain.answered(SESSION)
    scene.came("b", at(5))
    assert scene.turn() == Turn(asks(SESSION, 1, ("b", 5)))


def test_one_that_is_not_wanted_is_forgotten_by_the_session() -> None:
    scene = Scene("a", "b")
    scene.turn()
    scene.chain.answered(SESSION)
    scene.wanted["a"] = None
    scene.chain.taken("a")
    assert scene.turn() == Turn(asks(SESSION, 1, forgotten=("a",)))
    scene.chain.answered(SESSION)
    scene.chain.remove("b")
    assert scene.turn() == IDLE  # an empty session is none
    scene.came("c", at(1))
    scene.wanted["a"] = None
    assert scene.turn() == Turn(asks(0, 0, ("c", 1)))


def test_a_removed_partition_is_asked_for_neither_by_the_chain_nor_beside_it() -> None:
    scene = Scene("a", "b")
    scene.turn()
    scene.came("c", at(1))
    scene.chain.remove("c")
    assert scene.turn() == IDLE
    scene.chain.answered(SESSION)
    scene.chain.remove("b")
    assert scene.turn() == Turn(asks(SESSION, 1, forgotten=("b",)))


def test_a_leader_that_is_not_reached_is_tried_again_ever_more_seldom_and_told_everything() -> None:
    scene = Scene("a")
    pauses = []
    for _ in range(6):
        assert scene.turn().chain == asks(0, 0, ("a", 0))
        pauses.append(scene.chain.failed(scene.now, 300) - scene.now)
    assert pauses == [20, 40, 80, 160, 300, 300]
    scene.turn()
    scene.chain.answered(SESSION)
    scene.turn()
    assert scene.chain.failed(scene.now, 300) == scene.now + FIRST_PAUSE_MS  # it had answered meanwhile


def test_a_leader_that_has_forgotten_the_session_is_told_everything_at_once() -> None:
    scene = Scene("a", "b")
    scene.turn()
    scene.chain.answered(SESSION)
    scene.turn()
    assert scene.chain.failed(scene.now, LONGEST_MS, Errors.FETCH_SESSION_ID_NOT_FOUND) == scene.now
    assert scene.turn() == Turn(asks(0, 0, ("a", 0), ("b", 0)))


def test_a_leader_without_room_for_a_session_is_told_everything_each_time() -> None:
    scene = Scene("a")
    scene.turn()
    assert dict(scene.chain.answered(0)) == {"a": at(0)}
    assert scene.turn() == Turn(asks(0, 0, ("a", 0)))
