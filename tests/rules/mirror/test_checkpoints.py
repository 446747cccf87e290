"""What is told of groups, and what is written for them on the target."""

from ottla.mirror.checkpoints import Checkpoints, Committed
from ottla.mirror.formats import Checkpoint, OffsetSync
from ottla.mirror.policy import Policy
from ottla.mirror.selection import Names
from ottla.mirror.syncs import SyncStore


def _syncs(*pairs: tuple[int, int], topic: str = "orders") -> SyncStore:
    store = SyncStore(complete=True)
    for upstream, downstream in pairs:
        store.replay(OffsetSync(topic, 0, upstream, downstream))
    return store


def _checkpoints() -> Checkpoints:
    return Checkpoints(Policy(), Names(".*", "secret"), source="us", target="eu")


def test_a_groups_offset_is_told_under_the_topics_name_on_the_target() -> None:
    news = _checkpoints().news("app", {("orders", 0): Committed(100, "m")}, _syncs((100, 50)))
    assert news == [Checkpoint("app", "us.orders", 0, 100, 50, "m")]


def test_a_topic_that_came_from_the_target_has_its_own_name_there() -> None:
    news = _checkpoints().news("app", {("eu.orders", 0): Committed(100)}, _syncs((100, 50), topic="eu.orders"))
    assert [checkpoint.topic for checkpoint in news] == ["orders"]


def test_what_cannot_be_translated_or_is_not_mirrored_is_not_told() -> None:
    committed = {("orders", 0): Committed(10), ("orders", 1): Committed(100), ("secret", 0): Committed(100)}
    assert _checkpoints().news("app", committed, _syncs((100, 50))) == []


def test_a_checkpoint_is_news_when_it_is_further_or_the_group_went_back() -> None:
    checkpoints = _checkpoints()
    syncs = _syncs((100, 50), (200, 120))
    (first,) = checkpoints.news("app", {("orders", 0): Committed(150)}, syncs)
    checkpoints.replay(first)
    assert checkpoints.news("app", {("orders", 0): Committed(160)}, syncs) == []  # one past the same sync
    assert len(checkpoints.news("app", {("orders", 0): Committed(200)}, syncs)) == 1
    assert len(checkpoints.news("app", {("orders", 0): Committed(100)}, syncs)) == 1


def test_what_was_not_written_yet_stays_news() -> None:
    checkpoints = _checkpoints()
    committed = {("orders", 0): Committed(100)}
    assert checkpoints.news("app", committed, _syncs((100, 50))) == checkpoints.news(
        "app", committed, _syncs((100, 50))
    )


def test_an_idle_group_on_the_target_is_moved_forwards_only() -> None:
    checkpoints = _checkpoints()
    checkpoints.replay(Checkpoint("app", "us.orders", 0, 100, 50, ""))
    checkpoints.replay(Checkpoint("app", "us.orders", 1, 100, 50, "m"))
    both = {("us.orders", 0): Committed(50), ("us.orders", 1): Committed(50, "m")}
    assert checkpoints.to_commit("app", {}) == both
    ahead = {("us.orders", 0): Committed(50), ("us.orders", 1): Committed(49)}
    assert checkpoints.to_commit("app", ahead) == {("us.orders", 1): Committed(50, "m")}
    assert checkpoints.to_commit("stranger", {}) == {}
