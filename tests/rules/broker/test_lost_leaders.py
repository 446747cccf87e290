"""What Metadata says of a leader that was just lost: never in one answer that it is gone and who leads instead."""

from ottla.broker.replicas.lost_leaders import AGAIN_MS, LINGER_MS, MOMENT_MS, LostLeaders, Moment
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.model.ids import Millis
from ottla.protocol import messages as m

WAIT_MS = 300
FENCED, UNFENCED = 1, -1


def a_cluster(*broker_ids: int) -> MetadataImage:
    delta = MetadataDelta(EMPTY)
    for broker_id in broker_ids:
        delta.replay(m.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=broker_id, fenced=False))
    return delta.apply(offset=0, epoch=1, timestamp=0)


def changed(image: MetadataImage, broker_id: int, fenced: int) -> tuple[MetadataDelta, MetadataImage]:
    delta = MetadataDelta(image)
    delta.replay(m.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_id, fenced=fenced))
    return delta, delta.apply(offset=1, epoch=1, timestamp=0)


def a_broker_that_dies_again(at: int, image: MetadataImage) -> LostLeaders:
    leaders = LostLeaders(WAIT_MS, image)
    leaders.lost(2, Millis(at - AGAIN_MS + 1))
    leaders.reached(2)
    leaders.lost(2, Millis(at))
    return leaders


def test_a_broker_that_was_fenced_lingers_in_the_list() -> None:
    image = a_cluster(1, 2)
    leaders = LostLeaders(WAIT_MS, image)
    leaders.lost(2, Millis(900))
    assert not leaders.lingers(2, Millis(900))  # it is not fenced yet, and listed anyway
    delta, after = changed(image, 2, FENCED)
    leaders.on_metadata(delta, after, Millis(1000))
    assert leaders.moment(Millis(1000)) is None
    assert leaders.lingers(2, Millis(1000 + LINGER_MS - 1))
    assert not leaders.lingers(2, Millis(1000 + LINGER_MS))


def test_a_broker_that_has_only_registered_does_not_linger() -> None:
    _, image = changed(a_cluster(1, 2), 2, FENCED)
    leaders = LostLeaders(WAIT_MS, image)
    leaders.on_metadata(*changed(image, 2, FENCED), Millis(1000))
    assert not leaders.lingers(2, Millis(1001))


def test_a_broker_that_dies_again_leaves_the_list_first_and_its_partitions_have_no_leader() -> None:
    image = a_cluster(1, 2)
    leaders = a_broker_that_dies_again(50_000, image)
    assert leaders.moment(Millis(50_000 + MOMENT_MS - 1)) == Moment(image, frozenset({2}))
    assert leaders.moment(Millis(50_000 + MOMENT_MS)) is None
    delta, after = changed(image, 2, FENCED)
    leaders.on_metadata(delta, after, Millis(50_010))
    assert not leaders.lingers(2, Millis(50_010))


def test_a_broker_that_was_up_for_long_is_forgiven() -> None:
    leaders = LostLeaders(WAIT_MS, EMPTY)
    leaders.lost(2, Millis(1000))
    leaders.reached(2)
    leaders.lost(2, Millis(1000 + AGAIN_MS))
    assert leaders.moment(Millis(1000 + AGAIN_MS)) is None


def test_news_of_a_lost_leader_are_awaited_for_a_while() -> None:
    leaders = LostLeaders(WAIT_MS, EMPTY)
    assert not leaders.any(Millis(1000))
    leaders.lost(2, Millis(1000))
    assert leaders.any(Millis(1000))
    assert leaders.awaited_until([1, 2], Millis(1299)) == 1300
    assert leaders.awaited_until([1, 3], Millis(1299)) is None
    assert leaders.awaited_until([1, 2], Millis(1300)) is None
    assert not leaders.any(Millis(1300))


def test_news_of_several_are_awaited_for_as_long_as_of_the_one_that_was_lost_last() -> None:
    leaders = LostLeaders(WAIT_MS, EMPTY)
    leaders.lost(2, Millis(1000))
    leaders.lost(3, Millis(1100))
    assert leaders.awaited_until([2, 3], Millis(1200)) == leaders.awaited_until([2, 3], Millis(1350)) == 1400


def test_a_leader_that_stays_unreachable_is_lost_only_once() -> None:
    leaders = LostLeaders(WAIT_MS, EMPTY)
    leaders.lost(2, Millis(1000))
    leaders.lost(2, Millis(1500))
    assert leaders.awaited_until([2], Millis(1501)) is None


def test_a_leader_that_was_reached_again_may_be_lost_again() -> None:
    leaders = LostLeaders(WAIT_MS, EMPTY)
    leaders.lost(2, Millis(1000))
    leaders.reached(2)
    assert leaders.awaited_until([2], Millis(1001)) is None
    leaders.lost(2, Millis(5000))
    assert leaders.awaited_until([2], Millis(5299)) == 5300


def test_a_broker_that_nothing_is_fetched_from_is_lost_when_it_is_fenced() -> None:
    image = a_cluster(1, 2)
    leaders = LostLeaders(WAIT_MS, image)
    delta, after = changed(image, 2, FENCED)
    leaders.on_metadata(delta, after, Millis(1000))
    assert leaders.awaited_until([2], Millis(1001)) == 1000 + WAIT_MS
    leaders.on_metadata(*changed(after, 2, UNFENCED), Millis(1002))
    assert leaders.awaited_until([2], Millis(1003)) is None


def test_a_verdict_does_not_begin_the_wait_anew() -> None:
    image = a_cluster(1, 2)
    leaders = LostLeaders(WAIT_MS, image)
    leaders.lost(2, Millis(1000))
    leaders.on_metadata(*changed(image, 2, FENCED), Millis(1200))
    assert leaders.awaited_until([2], Millis(1000 + WAIT_MS)) is None


def test_without_a_wait_a_fenced_broker_is_gone_at_once() -> None:
    image = a_cluster(1, 2)
    leaders = LostLeaders(0, image)
    leaders.lost(2, Millis(1000))
    assert not leaders.any(Millis(1000))
    delta, after = changed(image, 2, FENCED)
    leaders.on_metadata(delta, after, Millis(1001))
    assert not leaders.lingers(2, Millis(1001))
    assert leaders.moment(Millis(1001)) is None
