"""Every client does every everyday thing, and is told the truth when it asks for something that cannot be.

Consumers are assigned their partitions: what is tested here needs no group.
"""

import random
import time
from collections.abc import Mapping

import pytest

from tests.support.clients.base import DEADLINE_S, Client, Given, Refused

UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_OUT_OF_RANGE = 1
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40

NOON = 1_700_000_000_000


def plain(count: int, size: int = 20) -> list[Given]:
    """Records a minute apart, from NOON on."""
    return [Given(f"{i:0{size}}".encode(), f"key {i % 7}".encode(), NOON + i * 60_000) for i in range(count)]


def noise(size: int) -> bytes:
    """Bytes that no codec makes smaller, the same in each run."""
    return random.Random(size).randbytes(size)


def create(client: Client, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    """Kafka answers when the controller has written the topic down; its broker may see it a moment later."""
    client.create_topic(topic, partitions, 1, configs or {})
    end = time.monotonic() + DEADLINE_S
    while topic not in client.list_topics():
        assert time.monotonic() < end, f"{topic} is not listed"


def wait_until_gone(client: Client, topic: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while topic in client.list_topics():
        assert time.monotonic() < end, f"{topic} is still listed"


def wait_for_partitions(client: Client, topic: str, total: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while client.partition_count(topic) != total:
        assert time.monotonic() < end, f"{topic} has {client.partition_count(topic)} partitions, not {total}"


def test_records_come_back_as_they_went_in_with_every_codec(client: Client, codec: str, topic: str) -> None:
    create(client, topic)
    given = [
        Given(b"value", b"key", NOON, (("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""))),
        Given(b"", b"", NOON + 1),
        Given(b"no key", None, NOON + 2),
        Given("žluťoučký kůň".encode(), "klíč".encode(), NOON + 3, (("háček", "ě".encode()),)),
        *plain(300, size=400),
    ]

    offsets = client.produce(topic, given, codec=codec)
    seen = client.consume(topic, len(given))

    assert offsets == list(range(len(given)))
    assert [record.offset for record in seen] == offsets
    assert [(r.value, r.key, r.timestamp, r.headers) for r in seen] == [
        (r.value, r.key, r.timestamp, r.headers) for r in given
    ]


@pytest.mark.needs("null values")
def test_a_tombstone_is_null_and_not_empty(client: Client, topic: str) -> None:
    create(client, topic, configs={"cleanup.policy": "compact"})

    client.produce(topic, [Given(None, b"key", NOON), Given(b"", b"key", NOON)])

    assert [record.value for record in client.consume(topic, 2)] == [None, b""]


@pytest.mark.needs("null header values")
def test_a_header_may_have_no_value(client: Client, topic: str) -> None:
    create(client, topic)

    client.produce(topic, [Given(b"v", b"k", NOON, (("nothing", None), ("empty", b"")))])

    assert client.consume(topic, 1)[0].headers == (("nothing", None), ("empty", b""))


def test_an_idempotent_producer_writes_each_record_once(client: Client, topic: str) -> None:
    create(client, topic)
    given = plain(500)

    assert client.produce(topic, given, idempotent=True) == list(range(500))

    assert [record.value for record in client.consume(topic, 500)] == [record.value for record in given]
    assert client.latest_offset(topic) == 500


def test_a_consumer_starts_in_the_middle_of_a_batch(client: Client, topic: str) -> None:
    create(client, topic)
    client.produce(topic, plain(50))

    assert [record.offset for record in client.consume(topic, 13, offset=37)] == list(range(37, 50))


def test_big_messages_pass(client: Client, topic: str) -> None:
    create(client, topic, configs={"max.message.bytes": "10000000"})
    given = [Given(noise(size), b"k", NOON) for size in (900_000, 5_000_000, 1)]

    client.produce(topic, given, max_request_bytes=8_000_000)

    assert [record.value == sent.value for record, sent in zip(client.consume(topic, 3), given, strict=True)] == [
        True
    ] * 3


def test_many_partitions_each_keep_their_own_records(client: Client, topic: str) -> None:
    create(client, topic, partitions=40)
    wait_for_partitions(client, topic, 40)

    for partition in range(0, 40, 9):
        client.produce(topic, [Given(f"{partition}/{i}".encode(), None, NOON) for i in range(3)], partition=partition)

    for partition in range(0, 40, 9):
        assert [record.value for record in client.consume(topic, 3, partition=partition)] == [
            f"{partition}/{i}".encode() for i in range(3)
        ]
    assert client.latest_offset(topic, 9) == 3
    assert client.latest_offset(topic, 5) == 0


def test_seeking_by_time_finds_the_first_record_not_before_it(client: Client, topic: str) -> None:
    create(client, topic)
    client.produce(topic, plain(10), codec="gzip")  # the broker has to look inside of the batch

    assert client.offset_for_time(topic, NOON - 1) == 0
    assert client.offset_for_time(topic, NOON) == 0
    assert client.offset_for_time(topic, NOON + 1) == 1
    assert client.offset_for_time(topic, NOON + 5 * 60_000) == 5
    assert client.offset_for_time(topic, NOON + 9 * 60_000 + 1) is None
    found = client.offset_for_time(topic, NOON + 7 * 60_000)
    assert found is not None
    assert client.consume(topic, 1, offset=found)[0].timestamp == NOON + 7 * 60_000


def test_the_ends_of_the_log_move_with_produce_and_delete_records(client: Client, topic: str) -> None:
    create(client, topic)
    assert (client.earliest_offset(topic), client.latest_offset(topic)) == (0, 0)

    client.produce(topic, plain(20))
    assert (client.earliest_offset(topic), client.latest_offset(topic)) == (0, 20)

    assert client.delete_records(topic, before=7) == 7
    assert (client.earliest_offset(topic), client.latest_offset(topic)) == (7, 20)
    assert [record.offset for record in client.consume(topic, 13, offset=7)] == list(range(7, 20))

    with pytest.raises(Refused) as refused:
        client.consume(topic, 1, offset=6)
    assert refused.value.code == OFFSET_OUT_OF_RANGE


def test_deleting_records_beyond_the_end_is_out_of_range(client: Client, topic: str) -> None:
    create(client, topic)
    client.produce(topic, plain(3))

    with pytest.raises(Refused) as refused:
        client.delete_records(topic, before=4)

    assert refused.value.code == OFFSET_OUT_OF_RANGE
    assert client.earliest_offset(topic) == 0


def test_an_offset_past_the_end_is_out_of_range(client: Client, topic: str) -> None:
    create(client, topic)
    client.produce(topic, plain(3))

    with pytest.raises(Refused) as refused:
        client.consume(topic, 1, offset=4)

    assert refused.value.code == OFFSET_OUT_OF_RANGE


def test_topic_configs_are_described_and_altered(client: Client, topic: str) -> None:
    create(client, topic, configs={"retention.ms": "60000", "cleanup.policy": "compact,delete"})

    described = client.describe_topic_configs(topic)
    assert described["retention.ms"] == "60000"
    assert described["cleanup.policy"] == "compact,delete"
    assert described["max.message.bytes"] == "1048588"
    assert described["segment.bytes"] == "1073741824"

    client.alter_topic_configs(topic, {"retention.ms": "120000", "max.message.bytes": "2000000"})
    described = client.describe_topic_configs(topic)
    assert (described["retention.ms"], described["max.message.bytes"]) == ("120000", "2000000")


def test_partitions_can_be_added_and_used(client: Client, topic: str) -> None:
    create(client, topic)
    client.create_partitions(topic, 3)
    wait_for_partitions(client, topic, 3)

    client.produce(topic, plain(2), partition=2)

    assert len(client.consume(topic, 2, partition=2)) == 2


def test_partitions_can_not_be_taken_away(client: Client, topic: str) -> None:
    create(client, topic, partitions=3)
    wait_for_partitions(client, topic, 3)

    with pytest.raises(Refused) as refused:
        client.create_partitions(topic, 2)

    assert refused.value.code == INVALID_PARTITIONS


def test_a_deleted_topic_is_gone_and_its_name_free_for_an_empty_one(client: Client, topic: str) -> None:
    create(client, topic)
    client.produce(topic, plain(5))

    client.delete_topic(topic)
    wait_until_gone(client, topic)
    create(client, topic)

    assert client.latest_offset(topic) == 0
    assert client.produce(topic, plain(1)) == [0]


def test_a_topic_exists_once(client: Client, topic: str) -> None:
    create(client, topic)

    with pytest.raises(Refused) as refused:
        client.create_topic(topic)

    assert refused.value.code == TOPIC_ALREADY_EXISTS


def test_deleting_an_unknown_topic_is_refused(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.delete_topic(topic)

    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


def test_adding_partitions_to_an_unknown_topic_is_refused(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_partitions(topic, 5)

    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.needs("errors of describe_topic_configs")
def test_describing_the_configs_of_an_unknown_topic_is_refused(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.describe_topic_configs(topic)

    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["a/b", "with space", "ž", "x" * 250])
def test_an_invalid_topic_name_is_refused(client: Client, name: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(name)

    assert refused.value.code == INVALID_TOPIC_EXCEPTION


def test_more_replicas_than_brokers_are_refused(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(topic, replication_factor=3)

    assert refused.value.code == INVALID_REPLICATION_FACTOR
    assert topic not in client.list_topics()


@pytest.mark.parametrize(
    "configs", [{"retention.ms": "soon"}, {"no.such.config": "1"}, {"cleanup.policy": "burn"}, {"segment.bytes": "1"}]
)
def test_a_topic_with_an_invalid_config_is_refused(client: Client, topic: str, configs: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(topic, configs=configs)

    assert refused.value.code == INVALID_CONFIG
    assert topic not in client.list_topics()


def test_altering_a_config_to_an_invalid_value_changes_nothing(client: Client, topic: str) -> None:
    create(client, topic, configs={"retention.ms": "60000"})

    with pytest.raises(Refused) as refused:
        client.alter_topic_configs(topic, {"retention.ms": "-7"})

    assert refused.value.code == INVALID_CONFIG
    assert client.describe_topic_configs(topic)["retention.ms"] == "60000"


def test_a_message_above_the_limit_of_its_topic_is_refused_and_leaves_no_trace(client: Client, topic: str) -> None:
    create(client, topic, configs={"max.message.bytes": "2000"})

    with pytest.raises(Refused) as refused:
        client.produce(topic, [Given(noise(5000), b"k", NOON)])

    assert refused.value.code == MESSAGE_TOO_LARGE
    assert client.produce(topic, [Given(noise(500), b"k", NOON)]) == [0]
