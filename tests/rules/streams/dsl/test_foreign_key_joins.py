"""Two tables joined by a foreign key: subscriptions, answers, and what becomes of stale ones."""

from typing import Any

import pytest

from ottla.serdes.base import SerdeError
from ottla.streams import Consumed, PartitionsError, Serdes, StreamsBuilder, TableJoined, TopologyError
from ottla.streams.errors import StreamsError
from ottla.streams.expressions import value
from ottla.streams.record import Raw
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.murmur3 import hash128
from ottla.streams.tasks.subscriptions import Instruction, Response, ResponseSerde, Subscription, SubscriptionSerde
from ottla.streams.tasks.task import Task
from tests.rules.streams.driving import driver_of, feed, results, run


def customer(order: str) -> str | None:
    """Orders are CUSTOMER:WHAT."""
    if order == "bad":
        raise KeyError("no customer")
    return order.partition(":")[0] or None


def pair(order: Any, name: Any) -> str:
    return f"{order}/{name}"


def joining(how: str, **options: Any) -> Any:
    def build(builder: StreamsBuilder) -> None:
        orders, customers = builder.table("orders"), builder.table("customers")
        joined = getattr(orders, how)(customers, pair, foreign_key=customer, **options)
        joined.to_stream().to("out")

    return build


STEPS = [
    ("orders", "1", "c:tea", 1),
    ("customers", "c", "Carl", 5),
    ("orders", "2", "c:ink", 3),
    ("customers", "c", "Carla", 6),
    ("orders", "1", "d:tea", 7),
    ("customers", "c", None, 8),
    ("orders", "2", None, 9),
]


def test_an_inner_join_follows_both_tables() -> None:
    assert run(joining("join"), STEPS) == [
        ("1", "c:tea/Carl", 5),
        ("2", "c:ink/Carl", 5),
        ("1", "c:tea/Carla", 6),
        ("2", "c:ink/Carla", 6),
        ("1", None, 7),
        ("2", None, 8),
        ("2", None, 9),
    ]


def test_a_left_join_has_rows_without_a_partner_and_without_a_foreign_key() -> None:
    steps = [("orders", "1", "c:tea", 1), ("orders", "1", ":tea", 2), ("customers", "c", "Carl", 3)]
    with driver_of(joining("left_join")) as driver:
        feed(driver, [*steps, ("orders", "1", None, 4)])
        assert results(driver) == [("1", "c:tea/None", 1), ("1", ":tea/None", 2), ("1", None, 4)]
        assert driver.dropped_records == {}


def test_an_inner_join_counts_rows_without_a_foreign_key_and_takes_their_result_back() -> None:
    with driver_of(joining("join")) as driver:
        feed(driver, [("customers", "c", "Carl", 1), ("orders", "1", "c:tea", 2), ("orders", "1", ":tea", 3)])
        assert results(driver) == [("1", "c:tea/Carl", 2), ("1", None, 3)]
        assert driver.dropped_records == {"null-foreign-key": 1}


def test_a_foreign_key_that_raises_ends_the_application_or_is_left_to_the_handler() -> None:
    with driver_of(joining("join")) as driver, pytest.raises(StreamsError, match="no customer"):
        feed(driver, [("orders", "1", "bad", 1)])
    goes_on = {"processing.exception.handler": "continue", "errors.dead.letter.queue.topic.name": "dead"}
    with driver_of(joining("join"), goes_on) as driver:
        feed(driver, [("orders", "1", "bad", 1), ("customers", "c", "Carl", 2), ("orders", "2", "c:ink", 3)])
        assert results(driver) == [("2", "c:ink/Carl", 3)]
        assert [raw.value for raw in driver.output("dead")] == [b"bad"]


def test_an_answer_for_a_value_that_has_changed_since_is_dropped() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    joining("join")(builder)
    topology = builder.build().with_default_serdes()
    sub = topology.sub_topologies()[0]
    backends: dict[str, MemoryBackend] = {}
    task = Task(sub, topology.graph, "app", 0, lambda name: backends.setdefault(name, MemoryBackend()))
    for offset, order in enumerate((b"c:tea", b"c:ink")):
        task.process([Raw("orders", 0, offset, b"1", order, 1)])
    topic = "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic"
    answers = [Response(hash128(order), "Carl") for order in (b"c:tea", b"c:ink")]
    serde = ResponseSerde(Serdes.string)
    out = task.process([Raw(f"app-{topic}", 0, n, b"1", serde.encode(each), 2) for n, each in enumerate(answers)])
    assert [(raw.topic, raw.value) for raw in out] == [("out", b"c:ink/Carl")]
    assert task.dropped == {"stale-foreign-key-response": 1}


def test_the_key_may_decide_too_and_an_expression_may_say_it() -> None:
    def by_expression(builder: StreamsBuilder) -> None:
        joined = builder.table("orders").join(builder.table("customers"), pair, foreign_key=value.substr(1, 1))
        joined.to_stream().to("out")

    def by_both(builder: StreamsBuilder) -> None:
        joined = builder.table("orders").join(
            builder.table("customers"),
            pair,
            foreign_key=lambda key, order: key[0] + order[0],
            foreign_key_with_key=True,
        )
        joined.to_stream().to("out")

    assert run(by_expression, [("customers", "c", "Carl", 1), ("orders", "1", "c:tea", 2)]) == [("1", "c:tea/Carl", 2)]
    assert run(by_both, [("customers", "1c", "Carl", 1), ("orders", "1", "c:tea", 2)]) == [("1", "c:tea/Carl", 2)]


# ---- partitions


def wide(joined: "TableJoined[Any, Any] | None" = None) -> StreamsBuilder:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    said = joined or TableJoined(name="fk")
    orders, customers = builder.table("orders"), builder.table("customers")
    orders.join(customers, pair, foreign_key=customer, joined=said).to_stream().to("out")
    return builder


def test_the_topics_between_both_are_as_wide_as_the_table_that_reads_them() -> None:
    assert wide().build().partition_counts({"orders": 3, "customers": 5}) == {
        "fk-subscription-registration-topic": 5,
        "fk-subscription-response-topic": 3,
    }


def test_an_existing_topic_between_both_of_another_width_is_refused() -> None:
    there = {"orders": 3, "customers": 5, "fk-subscription-response-topic": 4}
    with pytest.raises(PartitionsError, match="fk-subscription-response-topic exists with 4 partitions"):
        wide().build().partition_counts(there)


def outputs_of(builder: StreamsBuilder, number: int, partition: int, records: list[Raw]) -> list[Raw]:
    topology = builder.build().without_caches().with_default_serdes()
    sub = topology.sub_topologies()[number]
    backends: dict[str, MemoryBackend] = {}
    widths = {"app-fk-subscription-registration-topic": 5, "app-fk-subscription-response-topic": 3}
    task = Task(
        sub,
        topology.graph,
        "app",
        partition,
        lambda name: backends.setdefault(name, MemoryBackend()),
        partition_count=widths.__getitem__,
    )
    return [raw for raw in task.process(records) if raw.topic.endswith("-topic")]


def test_an_answer_goes_to_the_partition_that_asked() -> None:
    (asked,) = outputs_of(wide(), 0, 2, [Raw("orders", 2, 0, b"1", b"c:tea", 1)])
    assert (asked.partition, asked.key) == (-1, b"c")
    subscription = asked._replace(partition=4, offset=0)
    customers = Raw("customers", 4, 0, b"c", b"Carl", 0)
    (answer,) = outputs_of(wide(), 1, 4, [customers, subscription])
    assert (answer.partition, answer.key, answer.value) == (2, b"1", b"\x00" + hash128(b"c:tea") + b"Carl")


def test_tables_with_partitioners_of_their_own_are_found_by_those() -> None:
    def by_length(_topic: str, key: str, given: Any, partitions: int) -> int:
        assert given is None
        return len(key) % partitions

    builder = wide(TableJoined(by_length, by_length, "fk"))
    (asked,) = outputs_of(builder, 0, 2, [Raw("orders", 2, 0, b"1", b"c:tea", 1)])
    assert asked.partition == 1
    answers = outputs_of(builder, 1, 1, [asked._replace(offset=0), Raw("customers", 1, 0, b"c", b"Carl", 2)])
    assert [answer.partition for answer in answers] == [1]


# ---- said wrongly


def test_foreign_keys_that_are_not_of_the_other_tables_type_are_refused() -> None:
    def build(builder: StreamsBuilder) -> None:
        customers = builder.table("customers", Consumed(Serdes.long, Serdes.string))
        builder.table("orders").join(customers, pair, foreign_key=value.upper()).to_stream().to("out")

    with pytest.raises(TopologyError, match="joins keys of type string with keys of type long"):
        driver_of(build)


def test_values_that_nobody_can_hash_are_told() -> None:
    builder = StreamsBuilder()
    texts: Consumed[Any, Any] = Consumed(Serdes.string, Serdes.string)
    orders = builder.table("orders", texts).map_values(lambda order: {"customer": order})
    joined = orders.join(builder.table("customers", texts), pair, foreign_key=lambda order: order["customer"])
    joined.map_values(str).to_stream().foreach(print)
    with pytest.raises(TopologyError, match=r"no value serde for the join by foreign key of .*value_serde"):
        builder.build().with_default_serdes()


def test_table_joined_needs_a_foreign_key() -> None:
    builder = StreamsBuilder()
    one, two = builder.table("one"), builder.table("two")
    with pytest.raises(TopologyError, match="TableJoined is for joins by foreign key"):
        one.join(two, pair, joined=TableJoined(name="fk"))
    with pytest.raises(TopologyError, match="the foreign_key is 'customer'"):
        one.join(two, pair, foreign_key="customer")  # type: ignore[arg-type]


# ---- bytes


def test_the_hash_of_a_value_is_the_one_that_kafka_streams_makes() -> None:
    assert hash128(b"E").hex() == "65e64f8d9d0f0e19de48e1416b574ec5"
    assert hash128(b"0123456789abcdef0123456789abcdefXYZ").hex() == "4c09ad92142c82b89171f6d23ddb57b5"


def test_a_subscription_lies_as_kafka_streams_writes_it() -> None:
    serde = SubscriptionSerde(Serdes.string)
    given = Subscription(bytes(range(16)), Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, "key", 7)
    assert serde.encode(given) == b"\x01\x03" + bytes(range(16)) + b"key" + b"\x00\x00\x00\x07"
    assert serde.decode(serde.encode(given)) == given
    gone = Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, "key", 7)
    assert serde.encode(gone) == b"\x81\x01key\x00\x00\x00\x07"
    assert serde.decode(serde.encode(gone)) == gone
    oldest = Subscription(None, Instruction.DELETE_KEY_NO_PROPAGATE, "key", None, version=0)
    assert serde.decode(b"\x80\x00key") == oldest
    assert serde.encode(oldest) == b"\x80\x00key"


def test_a_response_lies_as_kafka_streams_writes_it() -> None:
    serde = ResponseSerde(Serdes.string)
    assert serde.encode(Response(bytes(16), "value", 3)) == bytes(17) + b"value"
    assert serde.decode(bytes(17) + b"value") == Response(bytes(16), "value")
    assert serde.decode(b"\x80") == Response(None, None)


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x01\x03abc", b"\x81\x09key\x00\x00\x00\x00", b"\x82\x01key", b"\x81\x01"]
)
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(SerdeError):
        SubscriptionSerde(Serdes.string).decode(data)


@pytest.mark.parametrize("data", [b"", b"\x00abc", b"\x01" + bytes(16)])
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(SerdeError):
        ResponseSerde(Serdes.string).decode(data)
