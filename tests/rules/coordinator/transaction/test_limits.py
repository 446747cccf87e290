"""How many transactions may be open, and how many transactional ids are remembered."""

from ottla.coordinator.transaction.shard import EXPIRED_AT_ONCE, PAUSE_MS, Load, TransactionSettings
from ottla.model.errors import Errors
from tests.rules.coordinator.transaction.scene import NAME, P0, P1, Scene


def test_beyond_the_limit_a_new_transaction_waits_until_another_has_ended() -> None:
    scene = Scene(TransactionSettings(max_open=2))
    first, second, third = (scene.begun(name) for name in ("a", "b", "c"))
    assert [scene.add(first, name="a"), scene.add(second, name="b")] == [Errors.NONE, Errors.NONE]
    assert scene.add(third, name="c") == Errors.CONCURRENT_TRANSACTIONS
    assert scene.add(first, P1, name="a") == Errors.NONE, "one that is open may grow"
    scene.end(second, committed=True, version=0, name="b")
    assert scene.add(third, name="c") == Errors.CONCURRENT_TRANSACTIONS, "its markers are missing"
    scene.write_markers()
    assert scene.add(third, name="c") == Errors.NONE


def test_open_transactions_are_counted_over_restarts_and_expiry() -> None:
    scene = Scene()
    producer = scene.begun()
    scene.begun("idle")
    scene.add(producer)
    assert scene.shard.load() == scene.restarted().shard.load() == Load(2, 1)
    scene.time = scene.settings.id_expiration_ms + scene.settings.expiration_check_ms
    scene.tick()
    scene.write_markers()
    assert scene.shard.load() == Load(1, 0)


def test_the_limit_holds_for_all_shards_together() -> None:
    scene = Scene(TransactionSettings(max_open=5))
    producer = scene.begun()
    scene.shard._node_load = lambda: Load(9, 5)
    assert scene.add(producer) == Errors.CONCURRENT_TRANSACTIONS


def test_beyond_the_limit_the_transactional_id_idle_for_longest_is_forgotten() -> None:
    scene = Scene(TransactionSettings(max_ids=3))
    producers = {}
    for name in ("open", "old", "older"):
        scene.time += 1
        producers[name] = scene.begun(name)
    scene.add(producers["open"], P0, name="open")
    scene.time += 1
    scene.init(name="old")
    scene.begun("new")
    assert list(scene.shard.transactions) == ["open", "old", "new"]
    assert scene.add(producers["older"], name="older") == Errors.INVALID_PRODUCER_ID_MAPPING
    assert list(scene.restarted().shard.transactions) == ["open", "old", "new"]


def test_a_known_transactional_id_makes_nobody_give_way() -> None:
    scene = Scene(TransactionSettings(max_ids=2))
    scene.begun("other")
    scene.begun(NAME)
    scene.init(name=NAME)
    assert list(scene.shard.transactions) == ["other", NAME]


def test_expired_transactional_ids_are_forgotten_a_bounded_number_at_a_time() -> None:
    settings = TransactionSettings()
    scene = Scene(settings)
    for number in range(EXPIRED_AT_ONCE + 5):
        scene.begun(f"t{number}")
    scene.time = settings.id_expiration_ms + settings.expiration_check_ms
    scene.tick()
    assert (len(scene.shard.transactions), scene.shard.next_tick()) == (5, scene.time + PAUSE_MS)
    scene.time += PAUSE_MS
    scene.tick()
    assert scene.shard.transactions == {}
