"""The book of quotas: buckets are found once, shared where they should be, and forgotten when idle."""

import pytest

from ottla.broker.quotas.clients import ClientQuotas, Windows
from ottla.broker.quotas.connections import ConnectionRates, CreationRates
from ottla.broker.quotas.meters import Meter
from ottla.broker.quotas.mutations import Mutations, permits_for
from ottla.model.ids import Millis

WINDOWS = Windows(11, 1000)
HOUR = 3_600_000


def a_book(limit: int = 1000) -> ClientQuotas:
    return ClientQuotas(WINDOWS, WINDOWS, limit)


def produce_meter(book: ClientQuotas, user: str, client: str, now: int = 0) -> Meter:
    meter = book.meters(user, client, Millis(now)).produce
    assert meter is not None
    return meter


def test_without_quotas_nothing_is_in_force_and_nothing_is_counted() -> None:
    book = a_book()
    assert not book.in_force
    meters = book.meters("u", "c", Millis(0))
    assert (meters.produce, meters.fetch, meters.request, meters.mutations) == (None, None, None, None)
    book.set({(("ip", None),): {"connection_creation_rate": 1.0}})
    assert not book.in_force  # no client's


def test_each_kind_of_quota_has_its_own_precedence() -> None:
    book = a_book()
    book.set(
        {
            (("user", "u"),): {"producer_byte_rate": 10.0},
            (("client-id", "c"),): {"producer_byte_rate": 20.0, "consumer_byte_rate": 30.0},
        }
    )
    meters = book.meters("u", "c", Millis(0))
    assert meters.produce is not None and meters.produce.bound == 10
    assert meters.fetch is not None and meters.fetch.bound == 30
    assert meters.request is None


def test_the_clients_of_a_user_share_his_bucket_and_a_default_is_for_each() -> None:
    book = a_book()
    book.set({(("user", None),): {"producer_byte_rate": 10.0}})
    assert produce_meter(book, "u", "c") is produce_meter(book, "u", "d")
    assert produce_meter(book, "u", "c") is not produce_meter(book, "v", "c")


def test_a_changed_quota_is_another_version_and_keeps_what_was_used() -> None:
    book = a_book()
    book.set({(("user", "u"),): {"producer_byte_rate": 10.0}})
    first, version = produce_meter(book, "u", "c"), book.version
    first.charge(100, Millis(0))
    book.set({(("user", "u"),): {"producer_byte_rate": 5.0}})
    assert book.version != version
    again = produce_meter(book, "u", "c")
    assert again is first
    assert (again.bound, again.rate.total) == (5.0, 100.0)


def test_a_bucket_that_nobody_used_for_an_hour_is_forgotten_and_sessions_look_again() -> None:
    book = a_book()
    book.set({(("client-id", None),): {"producer_byte_rate": 10.0}})
    old = produce_meter(book, "u", "old", now=0)
    version = book.version
    produce_meter(book, "u", "new", now=HOUR)
    assert [bucket.client_id for _, bucket, _ in book.rates()] == ["old", "new"]
    produce_meter(book, "u", "new", now=HOUR + 60_001)
    assert [bucket.client_id for _, bucket, _ in book.rates()] == ["new"]
    assert book.version > version
    assert produce_meter(book, "u", "old", now=HOUR + 60_002) is not old


def test_who_calls_himself_differently_each_time_does_not_fill_the_memory() -> None:
    book = a_book(limit=100)
    book.set({(("client-id", None),): {"producer_byte_rate": 10.0}})
    for number in range(1000):
        produce_meter(book, "u", f"client-{number}", now=number)
    assert len(list(book.rates())) <= 100
    assert ("producer_byte_rate", "client-999") in [(key, bucket.client_id) for key, bucket, _ in book.rates()]


def test_kip_124_time_is_held_for_one_sample_at_most() -> None:
    book = a_book()
    book.set({(("user", "u"),): {"request_percentage": 1.0}})
    meter = book.meters("u", "c", Millis(0)).request
    assert meter is not None
    assert meter.charge(50_000.0, Millis(0)) == 1_000


@pytest.mark.parametrize(("version", "strict"), [(5, False), (6, True), (7, True)])
def test_kip_599_a_client_is_refused_from_the_version_on_that_knows_the_error(version: int, strict: bool) -> None:
    book = a_book()
    book.set({(("client-id", "c"),): {"controller_mutation_rate": 1.0}})

    def permits() -> Mutations:
        found = permits_for(book, 19, version, "User:u", "c", Millis(0))
        assert found is not None
        return found

    assert permits().take(10, Millis(0))
    assert permits().take(10, Millis(0)) is True
    third = permits()
    assert third.take(10, Millis(0)) is not strict
    assert third.throttle_ms == (9_000 if strict else 19_000)


def test_what_creates_and_deletes_no_partitions_has_no_such_quota() -> None:
    book = a_book()
    book.set({(("user", None),): {"controller_mutation_rate": 1.0}})
    assert permits_for(book, 44, 1, "User:u", "c", Millis(0)) is None


def test_kip_612_above_its_rate_an_address_is_kept_waiting_and_does_not_count() -> None:
    rates = ConnectionRates(11, 1000)
    assert rates.hold_ms("10.0.0.1", Millis(0)) == 0
    rates.address_bounds = {(("ip", None),): 2.0}
    assert [rates.hold_ms("10.0.0.1", Millis(0)) for _ in range(21)] == [0] * 20 + [500]
    assert rates.hold_ms("10.0.0.1", Millis(0)) == 500
    assert rates.hold_ms("10.0.0.2", Millis(0)) == 0


def test_kip_612_an_acceptor_rests_above_the_rate_of_the_node_or_of_its_listener() -> None:
    rates = ConnectionRates(11, 1000)
    rates.limits = CreationRates(node=3, listeners={"CLIENT": 1}, protected="INTERNAL")
    assert [rates.acceptor_rest_ms("CLIENT", Millis(0)) for _ in range(11)] == [0] * 10 + [1000]
    assert [rates.acceptor_rest_ms("OTHER", Millis(0)) for _ in range(20)] == [0] * 19 + [333]
    assert [rates.acceptor_rest_ms("INTERNAL", Millis(0)) for _ in range(100)] == [0] * 100
