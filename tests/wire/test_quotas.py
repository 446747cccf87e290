"""Quotas over the wire: who is over his gets an answer at once, and is then not read for as long as it said."""

import time
from collections.abc import Iterator

import pytest

from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from ottla.testing import Cluster
from tests.support.quotas import DEFAULT, EXACT, SPECIFIED, Entity, altered, described, limit
from tests.support.requests import NOON, create_topic, fetch_partition, fetch_request, produce_request
from tests.support.wire import Closed, Wire

UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42
THROTTLING_QUOTA_EXCEEDED = 89
WINDOW_S = 10
PRODUCE, FETCH, API_VERSIONS = 0, 1, 18


def sized(size: int) -> bytes:
    """A batch with one value of so many bytes."""
    return bytes(build_batch([NewRecord(None, bytes(size), NOON)]))


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster(ottla_connection_creation_rate_per_ip=0) as kafka:
        yield kafka


@pytest.fixture
def admin(node: Cluster) -> Iterator[Wire]:
    with Wire(node.bootstrap_servers, client_id="admin") as wire:
        yield wire
        for entity in described(wire):
            keys = described(wire)[entity]
            limit(wire, dict(entity), **dict.fromkeys(keys))


def test_kip_219_a_produce_over_the_quota_is_answered_at_once_and_then_nothing_is_read(
    node: Cluster, admin: Wire
) -> None:
    topic_id = create_topic(admin, "over-produce")
    limit(admin, {"client-id": "eager"}, producer_byte_rate=10_000)
    with Wire(node.bootstrap_servers, client_id="eager") as eager, Wire(node.bootstrap_servers, "calm") as calm:
        frame = sized(90_000)
        assert eager.ask(produce_request(topic_id, frame)).throttle_time_ms == 0  # nine of the ten seconds at hand
        held = eager.ask(produce_request(topic_id, sized(15_000))).throttle_time_ms
        assert 400 < held < 800  # 105 kB where 100 are allowed: half a second
        started = time.monotonic()
        eager.send(m.ApiVersionsRequest("test", "1"))
        calm.ask(produce_request(topic_id, frame))
        assert eager.receive(API_VERSIONS).error_code == 0
        assert time.monotonic() - started > held / 1000 * 0.9
        assert calm.ask(produce_request(topic_id, frame)).throttle_time_ms == 0


def test_a_produce_that_nobody_answers_mutes_as_well(node: Cluster, admin: Wire) -> None:
    topic_id = create_topic(admin, "over-silent")
    limit(admin, {"client-id": "silent"}, producer_byte_rate=10_000)
    with Wire(node.bootstrap_servers, client_id="silent") as silent:
        started = time.monotonic()
        silent.send(produce_request(topic_id, sized(105_000), acks=0))
        answer = silent.ask(m.ApiVersionsRequest("test", "1"))
        assert time.monotonic() - started > 0.4
        assert answer.throttle_time_ms > 400  # the first answer there is tells it


def test_the_quota_of_a_user_is_shared_by_his_clients_and_a_default_is_not(node: Cluster, admin: Wire) -> None:
    topic_id = create_topic(admin, "shared")
    frame = sized(60_000)

    def held(*clients: str) -> list[bool]:
        found = []
        for client in clients:
            with Wire(node.bootstrap_servers, client_id=client) as wire:
                found.append(wire.ask(produce_request(topic_id, frame)).throttle_time_ms > 0)
        return found

    limit(admin, {"user": None}, producer_byte_rate=10_000)
    assert held("a", "b") == [False, True]  # both are ANONYMOUS
    limit(admin, {"user": None}, producer_byte_rate=None)
    limit(admin, {"client-id": None}, producer_byte_rate=10_000)
    assert held("c", "d", "c") == [False, False, True]


def test_a_fetch_over_the_quota_gets_nothing_and_its_session_stays_where_it_is(node: Cluster, admin: Wire) -> None:
    topic_id = create_topic(admin, "over-fetch")
    for _ in range(3):
        admin.ask(produce_request(topic_id, sized(60_000)))
    limit(admin, {"client-id": "reader"}, consumer_byte_rate=10_000)
    with Wire(node.bootstrap_servers, client_id="reader") as reader:
        first = reader.ask(fetch_request({topic_id: [fetch_partition(0, 0)]}, max_bytes=70_000, session_epoch=0))
        assert first.throttle_time_ms == 0
        (part,) = first.responses[0].partitions
        assert 60_000 < len(part.records) < 70_000
        started = time.monotonic()
        again = m.FetchRequest(
            max_bytes=70_000,
            max_wait_ms=0,
            session_id=first.session_id,
            session_epoch=1,
            topics=[m.FetchRequest.FetchTopic(topic_id=topic_id, partitions=[fetch_partition(0, 1)])],
        )
        held = reader.ask(again)
        assert (held.responses, held.error_code, held.session_id) == ([], 0, first.session_id)
        assert 1_000 < held.throttle_time_ms < 4_000
        limit(admin, {"client-id": "reader"}, consumer_byte_rate=1_000_000)
        again.session_epoch, again.topics = 2, []
        told = reader.ask(again)  # nothing was told, so all of it is news
        assert time.monotonic() - started > held.throttle_time_ms / 1000 * 0.9
        assert len(told.responses[0].partitions[0].records) > 60_000


def test_a_fetch_that_would_have_begun_a_session_begins_none(node: Cluster, admin: Wire) -> None:
    topic_id = create_topic(admin, "no-session")
    admin.ask(produce_request(topic_id, sized(60_000)))
    limit(admin, {"client-id": "starter"}, consumer_byte_rate=10_000)
    with Wire(node.bootstrap_servers, client_id="starter") as starter:
        asked = fetch_request({topic_id: [fetch_partition(0, 0)]}, session_epoch=0)
        first = starter.ask(asked)
        assert first.session_id > 0
        held = starter.ask(asked)
        assert (held.session_id, held.responses) == (0, [])
        assert held.throttle_time_ms > 0


def test_a_fetch_is_cut_to_what_the_quota_gives_in_its_window(node: Cluster, admin: Wire) -> None:
    topic_id = create_topic(admin, "cut")
    for _ in range(5):
        admin.ask(produce_request(topic_id, sized(9_000)))
    limit(admin, {"client-id": "cut"}, consumer_byte_rate=2_000)
    with Wire(node.bootstrap_servers, client_id="cut") as wire:
        answer = wire.ask(fetch_request({topic_id: [fetch_partition(0, 0)]}))
    assert answer.throttle_time_ms == 0
    assert 18_000 < len(answer.responses[0].partitions[0].records) <= 2_000 * WINDOW_S


def test_a_batch_larger_than_all_that_may_be_fetched_in_the_window_comes_through_once(
    node: Cluster, admin: Wire
) -> None:
    """In Kafka no consumer with such a quota ever gets past it."""
    topic_id = create_topic(admin, "large")
    admin.ask(produce_request(topic_id, sized(12_000)))
    limit(admin, {"client-id": "patient"}, consumer_byte_rate=1_000)
    with Wire(node.bootstrap_servers, client_id="patient") as wire:
        answer = wire.ask(fetch_request({topic_id: [fetch_partition(0, 0)]}))
    assert len(answer.responses[0].partitions[0].records) > 12_000
    assert 1_500 < answer.throttle_time_ms < 3_000


def test_kip_124_time_is_held_back_for_a_second_at_most(node: Cluster, admin: Wire) -> None:
    limit(admin, {"client-id": "busy"}, request_percentage=0.000_01)  # a microsecond in the whole of the window
    with Wire(node.bootstrap_servers, client_id="busy") as busy:
        answers = [busy.ask(m.MetadataRequest(topics=None)) for _ in range(2)]
    assert answers[-1].throttle_time_ms == 1_000


def test_kip_599_a_client_that_knows_the_error_is_refused_while_it_is_in_debt(node: Cluster, admin: Wire) -> None:
    limit(admin, {"client-id": "maker"}, controller_mutation_rate=2)  # a bucket of 22

    def create(wire: Wire, name: str, partitions: int, version: int) -> tuple[int, int]:
        topic = m.CreateTopicsRequest.CreatableTopic(name, partitions, 1)
        answer = wire.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000), version)
        return answer.topics[0].error_code, answer.throttle_time_ms

    with Wire(node.bootstrap_servers, client_id="maker") as maker:
        assert create(maker, "made-1", 20, 7) == (0, 0)
        assert create(maker, "made-2", 6, 7) == (0, 0)  # may go below zero, by more than a slow machine pays back
        error, held = create(maker, "made-3", 1, 7)
        assert error == THROTTLING_QUOTA_EXCEEDED
        assert 0 < held <= 2000
        error, held = create(maker, "made-3", 1, 5)  # muted meanwhile, so paid back; too old to know the error
        assert error == 0
        dropped = maker.ask(m.DeleteTopicsRequest(topic_names=["made-1"], timeout_ms=10_000), 4)
        assert dropped.responses[0].error_code == 0
        assert dropped.throttle_time_ms > 5_000
    left = admin.ask(m.MetadataRequest(topics=None))
    assert [topic.name for topic in left.topics if topic.name.startswith("made-")] == ["made-2", "made-3"]


def test_topics_that_come_into_being_by_being_named_count_as_well(node: Cluster, admin: Wire) -> None:
    limit(admin, {"client-id": "namer"}, controller_mutation_rate=0.1)  # a bucket of 1.1
    with Wire(node.bootstrap_servers, client_id="namer") as namer:
        asked = m.MetadataRequest(
            topics=[m.MetadataRequest.MetadataRequestTopic(name=f"named-{number}") for number in range(2)],
            allow_auto_topic_creation=True,
        )
        answer = namer.ask(asked)
    assert [topic.error_code for topic in answer.topics] == [0, 0]
    assert 8_000 < answer.throttle_time_ms < 9_100


def test_kip_612_too_many_connections_from_an_address_are_kept_waiting_and_closed(node: Cluster, admin: Wire) -> None:
    limit(admin, {"ip": "127.0.0.1"}, connection_creation_rate=1)
    let_in = 0
    with pytest.raises(Closed):
        for _ in range(2 * WINDOW_S):
            with Wire(node.bootstrap_servers) as wire:
                wire.ask(m.ApiVersionsRequest("test", "1"))
                let_in += 1
    assert let_in >= WINDOW_S
    limit(admin, {"ip": "127.0.0.1"}, connection_creation_rate=None)
    with Wire(node.bootstrap_servers) as wire:
        assert wire.ask(m.ApiVersionsRequest("test", "1")).error_code == 0


BAD_ALTERATIONS: dict[str, tuple[Entity, dict[str, float]]] = {
    "no entity": ({}, {"producer_byte_rate": 1}),
    "unknown entity": ({"group": "g"}, {"producer_byte_rate": 1}),
    "empty name": ({"user": ""}, {"producer_byte_rate": 1}),
    "ip with user": ({"ip": "10.0.0.1", "user": "u"}, {"connection_creation_rate": 1}),
    "ip that is none": ({"ip": "no such host"}, {"connection_creation_rate": 1}),
    "host that cannot be resolved": ({"ip": "nowhere.invalid"}, {"connection_creation_rate": 1}),
    "unknown key": ({"user": "u"}, {"bytes": 1}),
    "key of the other kind": ({"user": "u"}, {"connection_creation_rate": 1}),
    "key of clients for an ip": ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1}),
    "zero": ({"user": "u"}, {"producer_byte_rate": 0}),
    "negative": ({"user": "u"}, {"consumer_byte_rate": -5}),
    "fraction of a byte": ({"user": "u"}, {"producer_byte_rate": 1.5}),
    "fraction of a connection": ({"ip": "10.0.0.1"}, {"connection_creation_rate": 0.5}),
    "not a number": ({"user": "u"}, {"request_percentage": float("nan")}),
}


@pytest.mark.parametrize("case", BAD_ALTERATIONS)
def test_what_makes_no_sense_is_refused_and_changes_nothing(admin: Wire, case: str) -> None:
    entity, values = BAD_ALTERATIONS[case]
    assert altered(admin, entity, values) == INVALID_REQUEST
    assert described(admin) == {}


def test_a_key_twice_in_one_entry_is_refused(admin: Wire) -> None:
    kind = m.AlterClientQuotasRequest
    ops = [kind.OpData("producer_byte_rate", 1.0), kind.OpData("producer_byte_rate", 2.0)]
    answer = admin.ask(kind(entries=[kind.EntryData([kind.EntityData("user", "u")], ops)]))
    assert answer.entries[0].error_code == INVALID_REQUEST


def test_quotas_are_found_by_what_a_filter_names(admin: Wire) -> None:
    limit(admin, {"user": "alice"}, producer_byte_rate=1000, request_percentage=12.5)
    limit(admin, {"user": "alice", "client-id": "c"}, consumer_byte_rate=2000)
    limit(admin, {"user": None}, producer_byte_rate=3000)
    limit(admin, {"ip": "10.1.2.3"}, connection_creation_rate=5)
    alice, pair = (("user", "alice"),), (("client-id", "c"), ("user", "alice"))
    assert described(admin, ("user", EXACT, "alice")) == {
        alice: {"producer_byte_rate": 1000.0, "request_percentage": 12.5},
        pair: {"consumer_byte_rate": 2000.0},
    }
    assert list(described(admin, ("user", EXACT, "alice"), strict=True)) == [alice]
    assert list(described(admin, ("user", DEFAULT, None))) == [(("user", None),)]
    assert list(described(admin, ("client-id", SPECIFIED, None))) == [pair]
    assert len(described(admin)) == 4
    assert described(admin, strict=True) == {}
    assert altered(admin, {"user": "alice"}, {"producer_byte_rate": None}, validate_only=True) == 0
    limit(admin, {"user": "alice"}, producer_byte_rate=None, consumer_byte_rate=None)
    assert described(admin, ("user", EXACT, "alice"), strict=True) == {alice: {"request_percentage": 12.5}}


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("user", EXACT, "a"), ("user", EXACT, "b")], INVALID_REQUEST),
        ([("user", EXACT, "a"), ("ip", EXACT, "10.0.0.1")], INVALID_REQUEST),
        ([("user", EXACT, None)], INVALID_REQUEST),
        ([("user", DEFAULT, "a")], INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], INVALID_REQUEST),
        ([("user", 3, None)], INVALID_REQUEST),
        ([("", EXACT, "a")], INVALID_REQUEST),
        ([("group", EXACT, "a")], UNSUPPORTED_VERSION),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    admin: Wire, components: list[tuple[str, int, str | None]], error: int
) -> None:
    assert described(admin, *components) == error


def test_the_controller_counts_what_other_brokers_pass_on_and_tells_them_for_how_long() -> None:
    with Cluster(3) as kafka:
        follower = next(node for node in kafka.running if node != kafka.controller)
        with Wire(kafka.bootstrap_server(follower), client_id="maker") as maker:
            limit(maker, {"client-id": "maker"}, controller_mutation_rate=0.5)  # a bucket of 5.5
            codes = []
            for name in ("one", "two", "three"):
                topic = m.CreateTopicsRequest.CreatableTopic(name, 4, 1)
                answer = maker.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
                codes.append(answer.topics[0].error_code)
            assert codes == [0, 0, THROTTLING_QUOTA_EXCEEDED]
            assert 3_000 < answer.throttle_time_ms <= 5_000
