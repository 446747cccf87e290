"""A connection: the greeting, headers, tags, order, silence, and when the server hangs up."""

import signal
from pathlib import Path
from struct import pack

import pytest

from ottla.protocol import messages as m
from ottla.protocol.apis import API
from ottla.protocol.codec import Message
from ottla.protocol.frames import RequestHeader, decode_response_header, encode_request
from tests.support.nodes import Ottla
from tests.support.requests import (
    NAMED_FETCH,
    NAMED_PRODUCE,
    batch,
    create_topic,
    fetch,
    fetch_partition,
    fetch_request,
    list_offset,
    produce_request,
    records_in,
    wait_for_topic,
)
from tests.support.wire import Deadline, Wire, connections, latest, versions

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42
REBOOTSTRAP_REQUIRED = 129

# What a node without groups, transactions and security serves.
SPINE = (0, 1, 2, 3, 10, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 44, 55, 57, 60, 61, 74, 75)
CONTROLLER_ONLY = (52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82)

HELLO = m.ApiVersionsRequest(client_software_name="wire-test", client_software_version="1.0")


def ranges(response: m.ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def test_the_greeting_works_at_every_version(bootstrap: str) -> None:
    for version in versions(API_VERSIONS):
        with Wire(bootstrap) as wire:
            answer = wire.ask(HELLO, version)

            assert answer.error_code == 0
            assert API_VERSIONS in ranges(answer)


@pytest.mark.parametrize("key", [key for key in SPINE if key not in (0, 18)])
def test_an_api_is_advertised_with_kafkas_range(wire: Wire, key: int) -> None:
    assert ranges(wire.ask(HELLO))[key] == (versions(key)[0], versions(key)[-1])


def test_produce_is_advertised_from_0_for_the_sake_of_old_librdkafka(wire: Wire) -> None:
    assert ranges(wire.ask(HELLO))[0] == (0, 13)  # KAFKA-18659


def test_what_belongs_to_controllers_is_not_advertised_to_clients(wire: Wire) -> None:
    assert not set(CONTROLLER_ONLY) & set(ranges(wire.ask(HELLO)))


def test_features_are_announced_as_each_version_can_read_them(wire: Wire) -> None:
    third, fourth = wire.ask(HELLO, 3), wire.ask(HELLO, 4)

    # KAFKA-17011: below version 4 nothing whose lowest level is 0 may be named.
    assert [(f.name, f.min_version, f.max_version) for f in third.supported_features] == [("metadata.version", 7, 30)]
    assert {(f.name, f.min_version, f.max_version) for f in fourth.supported_features} == {
        ("metadata.version", 7, 30),
        ("kraft.version", 0, 1),
        ("transaction.version", 0, 2),
        ("group.version", 0, 1),
        ("eligible.leader.replicas.version", 0, 1),
    }
    finalized = {f.name: f.max_version_level for f in fourth.finalized_features}
    assert finalized["metadata.version"] == 30
    assert not {"share.version", "streams.version"} & set(finalized)  # their APIs are not served
    assert 0 not in finalized.values()
    assert fourth.finalized_features_epoch >= 0


def beyond(wire: Wire) -> int:
    return ranges(wire.ask(HELLO))[API_VERSIONS][1] + 1


def test_a_greeting_from_the_future_is_answered_in_version_0_and_the_connection_goes_on(wire: Wire) -> None:
    for version in (beyond(wire), 32767):
        wire.send_frame(pack(">hhih", API_VERSIONS, version, 7, -1) + b"\0whatever a later version has to say")
        frame = wire.receive_frame()
        correlation_id, pos = decode_response_header(frame, API_VERSIONS, 0)
        answer = m.ApiVersionsResponse.decode(frame, 0, pos)

        assert (correlation_id, answer.error_code) == (7, UNSUPPORTED_VERSION)
        # KIP-511: only the range that the client has to choose from.
        assert ranges(answer) == {API_VERSIONS: ranges(wire.ask(HELLO))[API_VERSIONS]}


def test_kip_1242_a_client_of_another_cluster_is_told_to_look_for_its_own(wire: Wire) -> None:
    if ranges(wire.ask(HELLO))[API_VERSIONS][1] < 5:
        return  # Apache Kafka 4.3.1: the future, see above
    cluster_id = wire.ask(m.DescribeClusterRequest()).cluster_id
    known = m.ApiVersionsRequest("wire-test", "1.0", cluster_id=cluster_id)
    stranger = m.ApiVersionsRequest("wire-test", "1.0", cluster_id="another")

    assert wire.ask(known, 5).error_code == 0
    assert wire.ask(stranger, 5).error_code == REBOOTSTRAP_REQUIRED


@pytest.mark.parametrize("name", ["", "-starts-badly", "has space", "ends-badly."])
def test_a_client_must_name_its_software_properly(wire: Wire, name: str) -> None:
    assert wire.ask(m.ApiVersionsRequest(name, "1.0"), 3).error_code == INVALID_REQUEST
    assert wire.ask(m.ApiVersionsRequest("fine", name), 4).error_code == INVALID_REQUEST


def test_a_client_without_a_name_is_served(bootstrap: str) -> None:
    with Wire(bootstrap, client_id=None) as wire:
        assert wire.ask(m.MetadataRequest(topics=[]), 0).brokers
        assert wire.ask(m.MetadataRequest(topics=[]), 13).brokers


STRANGE_TAGS = b"\x02" + b"\xa0\x1f\x03abc" + b"\xff\xff\x03\x00"
"""A tag section that no version defines: two fields, 4000 with three bytes and 65535 with none."""


def tagged(request: Message, version: int, correlation_id: int) -> bytes:
    """The request with strange tags in its header and at its end."""
    frame = encode_request(RequestHeader(request.API_KEY, version, correlation_id, "x"), request)
    header_end = 4 + 10 + 1
    assert frame[header_end] == 0 and frame[-1] == 0
    return frame[4:header_end] + STRANGE_TAGS + frame[header_end + 1 : -1] + STRANGE_TAGS


def flexible_versions(key: int) -> list[int]:
    first = API[key].first_flexible
    return [] if first is None else [version for version in versions(key) if version >= first]


HARMLESS = (m.MetadataRequest(topics=[]), m.DescribeClusterRequest(), HELLO, m.FetchRequest(), m.ListOffsetsRequest())


@pytest.mark.parametrize("request_", HARMLESS, ids=lambda request: type(request).__name__)
def test_unknown_tags_in_header_and_body_are_skipped(wire: Wire, request_: Message) -> None:
    for version in flexible_versions(request_.API_KEY):
        wire.send_frame(tagged(request_, version, 5))
        correlation_id, answer = wire.receive_numbered(request_.API_KEY, version)

        assert correlation_id == 5
        assert getattr(answer, "error_code", 0) == 0


def test_unknown_tags_in_nested_structs_are_skipped(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    name = bytes([len(topic) + 1]) + topic.encode()
    data = batch(3)
    size = bytes([(len(data) + 1) % 128 + 128, (len(data) + 1) // 128]) if len(data) > 126 else bytes([len(data) + 1])

    partition = pack(">i", 0) + size + data + STRANGE_TAGS
    body = b"\x00" + pack(">hi", -1, 5000) + b"\x02" + name + b"\x02" + partition + STRANGE_TAGS + STRANGE_TAGS
    wire.send_frame(pack(">hhih", 0, 9, 1, -1) + STRANGE_TAGS + body)
    assert wire.receive(0, 9).responses[0].partition_responses[0].error_code == 0

    partition = pack(">iiqiqi", 0, -1, 1, -1, -1, 1_000_000) + STRANGE_TAGS
    body = pack(">iiibii", 100, 1, 1_000_000, 0, 0, -1) + b"\x02" + topic_id + b"\x02" + partition + STRANGE_TAGS
    body += b"\x01" + b"\x01" + STRANGE_TAGS
    wire.send_frame(pack(">hhih", 1, 17, 2, -1) + STRANGE_TAGS + body)
    assert len(records_in(wire.receive(1, 17).responses[0].partitions[0].records)) == 3

    body = b"\x02" + bytes(16) + name + STRANGE_TAGS + b"\x00\x00" + STRANGE_TAGS
    wire.send_frame(pack(">hhih", 3, 12, 3, -1) + STRANGE_TAGS + body)
    assert wire.receive(3, 12).topics[0].topic_id == topic_id


def test_bytes_after_a_request_are_ignored(wire: Wire) -> None:
    frame = encode_request(RequestHeader(60, 0, 9, None), m.DescribeClusterRequest())

    wire.send_frame(frame[4:] + b"left over")

    assert wire.receive_numbered(60, 0)[0] == 9


def test_pipelined_requests_are_answered_in_order_while_a_fetch_waits_in_front(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, partitions=2)
    waiting = fetch_request({topic: [fetch_partition()]}, max_wait_ms=400, min_bytes=1)

    first = wire.send(waiting, NAMED_FETCH)
    second = wire.send(m.MetadataRequest(topics=[]), 12)
    third = wire.send(produce_request(topic, batch(1), partition=1), NAMED_PRODUCE)
    fourth = wire.send(HELLO, 0)

    number, fetched = wire.receive_numbered(1, NAMED_FETCH)
    assert (number, records_in(fetched.responses[0].partitions[0].records)) == (first, [])
    assert wire.receive_numbered(3, 12)[0] == second
    assert wire.receive_numbered(0, NAMED_PRODUCE)[0] == third
    assert wire.receive_numbered(18, 0)[0] == fourth


def test_a_waiting_fetch_does_not_hold_up_other_connections(wire: Wire, bootstrap: str, topic: str) -> None:
    create_topic(wire, topic)
    wire.send(fetch_request({topic: [fetch_partition()]}, max_wait_ms=15_000, min_bytes=1), NAMED_FETCH)

    with Wire(bootstrap) as other:
        other.ask(produce_request(topic, batch(2)), NAMED_PRODUCE)

    assert len(records_in(wire.receive(1, NAMED_FETCH).responses[0].partitions[0].records)) == 2


def test_many_requests_may_be_under_way(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    numbers = [wire.send(produce_request(topic, batch(1)), NAMED_PRODUCE) for _ in range(200)]
    answers = [wire.receive_numbered(0, NAMED_PRODUCE) for _ in numbers]

    assert [number for number, _ in answers] == numbers
    assert [answer.responses[0].partition_responses[0].base_offset for _, answer in answers] == list(range(200))


def test_a_produce_with_acks_0_gets_no_answer_and_the_rest_flows_on(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    for _ in range(3):
        wire.send(produce_request(topic, batch(1), acks=0), NAMED_PRODUCE)
    number = wire.send(produce_request(topic, batch(1), acks=1), NAMED_PRODUCE)

    answered, answer = wire.receive_numbered(0, NAMED_PRODUCE)
    assert (answered, answer.responses[0].partition_responses[0].base_offset) == (number, 3)
    assert list_offset(wire, topic, -1).offset == 4


def test_a_refused_produce_with_acks_0_is_told_by_hanging_up(wire: Wire, topic: str) -> None:
    wire.send(produce_request(topic, batch(1), acks=0), NAMED_PRODUCE)

    assert wire.is_closed_by_peer()


@pytest.mark.parametrize(
    ("key", "version"),
    [(0, 2), (0, 14), (1, 3), (1, 19), (2, 0), (3, 14), (3, -1), (19, 1), (22, 7), (32, 0), (35, 0), (75, 1)]
    + [(4, 0), (7, 3), (93, 0), (999, 0), (-1, 0), (32767, 32767)]
    + [(key, 0) for key in CONTROLLER_ONLY],
)  # fmt: skip
def test_the_server_hangs_up_on_what_it_does_not_serve(wire: Wire, key: int, version: int) -> None:
    wire.send_frame(pack(">hhih", key, version, 1, -1) + bytes(40))

    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 104_857_601])
def test_the_server_hangs_up_on_a_size_it_will_not_read(wire: Wire, size: int) -> None:
    wire.send_bytes(pack(">i", size) + bytes(8))

    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("payload", [b"", b"\x00", pack(">hhi", 3, 9, 1), pack(">hhih", 3, 0, 1, 500) + b"abc"])
def test_the_server_hangs_up_on_half_a_header(wire: Wire, payload: bytes) -> None:
    wire.send_frame(payload)

    assert wire.is_closed_by_peer()


def test_the_server_hangs_up_on_a_body_that_is_none(wire: Wire) -> None:
    wire.send_frame(pack(">hhih", 3, 1, 1, -1) + pack(">i", 1_000_000) + b"few")

    assert wire.is_closed_by_peer()


def test_the_address_in_metadata_leads_back_to_the_node(wire: Wire) -> None:
    (broker,) = wire.ask(m.MetadataRequest(topics=[])).brokers

    with Wire(f"{broker.host}:{broker.port}") as again:
        assert [b.node_id for b in again.ask(m.MetadataRequest(topics=[])).brokers] == [broker.node_id]


def test_metadata_answers_at_every_version(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic, partitions=2)
    for version in versions(3):
        wanted = [m.MetadataRequest.MetadataRequestTopic(name=topic)]
        answer = wire.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=version < 4), version)

        assert len(answer.brokers) == 1
        (described,) = answer.topics
        assert (described.name, described.error_code) == (topic, 0)
        assert sorted(part.partition_index for part in described.partitions) == [0, 1]
        node = answer.brokers[0].node_id
        assert {(p.leader_id, tuple(p.replica_nodes), tuple(p.isr_nodes)) for p in described.partitions} == {
            (node, (node,), (node,))
        }
        assert answer.controller_id == (node if version >= 1 else -1)
        assert described.topic_id == (topic_id if version >= 10 else bytes(16))


def test_metadata_by_topic_id(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    unknown = bytes(range(16))
    wanted = [m.MetadataRequest.MetadataRequestTopic(topic_id=id_, name=None) for id_ in (topic_id, unknown)]

    for version in (12, 13):
        answer = wire.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=False), version)
        assert {(t.topic_id, t.name, t.error_code) for t in answer.topics} == {
            (topic_id, topic, 0),
            (unknown, None, 100),
        }


def test_a_topic_that_is_asked_for_twice_is_told_of_once(wire: Wire, topic: str) -> None:
    topic_id = create_topic(wire, topic)
    kind = m.MetadataRequest.MetadataRequestTopic
    by_name, by_id = kind(name=topic), kind(topic_id=topic_id, name=None)

    for wanted in ([by_name, by_name], [by_id, by_id], [by_id, kind(name="names do not count beside ids")]):
        answer = wire.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        assert [(t.name, t.topic_id, t.error_code) for t in answer.topics] == [(topic, topic_id, 0)]


def test_null_topics_mean_all_and_no_topics_mean_none(wire: Wire, topic: str) -> None:
    create_topic(wire, topic)

    assert topic in {t.name for t in wire.ask(m.MetadataRequest(topics=None), 12).topics}
    assert topic in {t.name for t in wire.ask(m.MetadataRequest(topics=[]), 0).topics}
    assert wire.ask(m.MetadataRequest(topics=[]), 12).topics == []


def test_a_topic_is_created_by_asking_for_it_if_the_client_allows(wire: Wire, topic: str) -> None:
    wanted = [m.MetadataRequest.MetadataRequestTopic(name=topic)]
    assert wire.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)).topics[0].error_code == 3

    # Kafka says "unknown" while it creates the topic; to say "here it is" at once is as good.
    first = wire.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=True)).topics[0]
    assert first.error_code in (0, 3, 5)
    deadline = Deadline(f"{topic} by auto-creation")
    while (seen := wire.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=True)).topics[0]).error_code:
        assert seen.error_code in (3, 5)
        deadline.check(seen)
    wait_for_topic(wire, topic, len(seen.partitions))
    assert fetch(wire, topic).error_code == 0


def test_an_invalid_name_is_not_created(wire: Wire) -> None:
    wanted = [m.MetadataRequest.MetadataRequestTopic(name="no/such name")]

    assert wire.ask(m.MetadataRequest(topics=wanted, allow_auto_topic_creation=True)).topics[0].error_code == 17


def test_latest_versions_are_what_this_suite_thinks(wire: Wire) -> None:
    advertised = ranges(wire.ask(HELLO))

    assert {key: advertised[key][1] for key in SPINE if key != API_VERSIONS} == {
        key: latest(key) for key in SPINE if key != API_VERSIONS
    }


def test_large_requests_that_come_at_the_same_time_are_not_taken_for_one_another(tmp_path: Path) -> None:
    """They are read by threads, when the loop's buffer is in use for others already."""
    with Ottla(tmp_path / "node") as node, connections(node.bootstrap, 8) as wires:
        assert node.process is not None
        for wire in wires:
            wire.ask(m.MetadataRequest(topics=[], allow_auto_topic_creation=False), 12)
        node.process.send_signal(signal.SIGSTOP)
        asked = [[f"{number}-{each:090}" for each in range(800)] for number in range(len(wires))]
        for wire, names in zip(wires, asked, strict=True):
            topics = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
            wire.send(m.MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
        node.process.send_signal(signal.SIGCONT)
        assert [[topic.name for topic in wire.receive(3, 12).topics] for wire in wires] == asked
