"""Conversations about transactions: producers that are unknown, late, fenced, out of order, or take another's name."""

from collections.abc import Iterator
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.batch import TRANSACTIONAL
from tests.support.conversation import KEPT, Conversation, Step
from tests.support.group_conversations import ready
from tests.support.requests import ZERO_ID, batch, create_topic
from tests.support.requests import producer_id as fresh_producer_id
from tests.support.transactions import TV1, TV2, ByHand
from tests.support.wire import Wire, latest, versions

Who = tuple[str, int, int]
"""Transactional id, producer id, epoch."""
VERIFYING = 4
"""The version of AddPartitionsToTxn from which on brokers ask, about many transactions at once."""


# ---- requests


def adding(who: Who, version: int, *places: tuple[str, int], verify_only: bool = False) -> m.AddPartitionsToTxnRequest:
    kind = m.AddPartitionsToTxnRequest
    topics = [
        kind.AddPartitionsToTxnTopic(name, [index for topic, index in places if topic == name])
        for name in dict.fromkeys(topic for topic, _ in places)
    ]
    if version < VERIFYING:
        return kind([], *who, topics)
    return kind([kind.AddPartitionsToTxnTransaction(*who, verify_only, topics)])


def committing(who: Who, group: str, topic: str, version: int, **options: Any) -> m.TxnOffsetCommitRequest:
    kind = m.TxnOffsetCommitRequest
    metadata, partition = options.pop("metadata", "note"), options.pop("partition", 0)
    part = kind.TxnOffsetCommitRequestPartition(partition, 7, committed_metadata=metadata)
    name, producer_id, epoch = who
    request = kind(name, group, producer_id, epoch, topics=[kind.TxnOffsetCommitRequestTopic(topic, [part])])
    if version >= 3:
        request.generation_id, request.member_id = options.pop("generation", -1), options.pop("member", "")
    return request


def producing(
    topic: str,
    who: Who,
    sequence: int,
    *,
    partition: int = 0,
    count: int = 1,
    transactional: bool = True,
    name: str | None = "",
) -> m.ProduceRequest:
    kind = m.ProduceRequest
    data = batch(
        count,
        attributes=TRANSACTIONAL if transactional else 0,
        producer_id=who[1],
        producer_epoch=who[2],
        base_sequence=sequence,
    )
    where = kind.TopicProduceData(topic, ZERO_ID, [kind.PartitionProduceData(partition, data)])
    given = (who[0] if transactional else None) if name == "" else name
    return kind(given, -1, 10_000, [where])


def strangers(who: Who) -> Iterator[tuple[str, Who]]:
    name, producer_id, epoch = who
    yield "an unknown name", (f"{name}-nobody", producer_id, epoch)
    yield "no name", ("", producer_id, epoch)
    yield "another producer", (name, producer_id + 1000, epoch)
    yield "no producer", (name, -1, epoch)
    yield "the next epoch", (name, producer_id, epoch + 1)
    yield "the epoch before", (name, producer_id, epoch - 1)
    yield "no epoch", (name, producer_id, -1)


def who_is(producer: ByHand) -> Who:
    return producer.name, producer.producer_id, producer.epoch


# ---- conversations


def transactions(wire: Wire, t: str) -> Conversation:
    """InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit, and what describes them."""
    topic, group = f"{t}t", f"{t}g"
    create_topic(wire, topic, 2)
    ready(wire, group)
    yield from _beginnings(wire, t)
    for version in versions(24):
        yield from _additions(wire, t, topic, version)
    for version in versions(25):
        yield from _groups_added(wire, t, group, version)
    for version in versions(26):
        yield from _ends(wire, t, topic, version)
    for version in versions(28):
        yield from _offsets(wire, t, group, topic, version)
    yield from _looks(wire, t, topic)
    yield from _markers(wire, t, topic)


def _beginnings(wire: Wire, t: str) -> Conversation:
    kind = m.InitProducerIdRequest
    for version in versions(22):
        producer = ByHand(wire, f"{t}init{version}").begin()
        name = producer.name
        yield Step("init: again", kind(name, 60_000), version)
        for timeout in (0, -1, 900_000, 900_001):
            yield Step(f"init: {timeout} ms", kind(name, timeout), version)
        yield Step("init: no name", kind("", 60_000), version)
        if version < 3:
            continue
        mine = producer.begin().producer_id, producer.epoch
        yield Step("init: recovers", kind(name, 60_000, *mine), version)
        yield Step("init: recovers again", kind(name, 60_000, *mine), version)
        yield Step("init: another", kind(name, 60_000), version)
        yield Step("init: too late", kind(name, 60_000, *mine), version)
        yield Step("init: another's id", kind(name, 60_000, mine[0] + 1000, 0), version)
        yield Step("init: an epoch to come", kind(name, 60_000, mine[0], 99), version)
        yield Step("init: an id only", kind(name, 60_000, mine[0], -1), version)
        yield Step("init: an epoch only", kind(name, 60_000, -1, 3), version)
        yield Step("init: a new name that has an id", kind(f"{name}-new", 60_000, mine[0], 0), version)
    yield Step("init: two phases", kind(f"{t}two", 60_000, enable2_pc=True), 6)
    yield Step("init: keeps what is prepared", kind(f"{t}two", 60_000, keep_prepared_txn=True), 6)


def _additions(wire: Wire, t: str, topic: str, version: int) -> Conversation:
    producer = ByHand(wire, f"{t}add{version}").begin()
    producer.begin()
    who = who_is(producer)
    for label, other in strangers(who):
        yield Step(f"add: {label}", adding(other, version, (topic, 0)), version)
    yield Step("add: nothing", adding(who, version), version)
    yield Step("add: no such partition", adding(who, version, (topic, 0), (topic, 9)), version)
    yield Step("add: no such topic", adding(who, version, (f"{t}never", 0)), version)
    yield Step("add: a coordinator's topic", adding(who, version, ("__transaction_state", 0)), version)
    if version >= VERIFYING:
        yield Step("add: not there yet", adding(who, version, (topic, 0), verify_only=True), version)
    yield Step("add", adding(who, version, (topic, 0)), version)
    yield Step("add: again", adding(who, version, (topic, 0)), version)
    if version >= VERIFYING:
        yield Step("add: one of two", adding(who, version, (topic, 0), (topic, 1), verify_only=True), version)
        for label, other in strangers(who):
            yield Step(f"verify: {label}", adding(other, version, (topic, 0), verify_only=True), version)
    producer.end(committed=False)


def _groups_added(wire: Wire, t: str, group: str, version: int) -> Conversation:
    producer = ByHand(wire, f"{t}group{version}").begin()
    producer.begin()
    who = who_is(producer)
    for label, other in strangers(who):
        yield Step(f"add group: {label}", m.AddOffsetsToTxnRequest(*other, group), version)
    yield Step("add group", m.AddOffsetsToTxnRequest(*who, group), version)
    yield Step("add group: again", m.AddOffsetsToTxnRequest(*who, group), version)
    yield Step("add group: none", m.AddOffsetsToTxnRequest(*who, ""), version)
    producer.end(committed=False)


def _ends(wire: Wire, t: str, topic: str, version: int) -> Conversation:
    producer = ByHand(wire, f"{t}end{version}", TV1 if version < 5 else TV2).begin()
    producer.begin()

    def end(label: str, who: Who, committed: bool) -> Step:
        return Step(f"end: {label}, {'commit' if committed else 'abort'}", m.EndTxnRequest(*who, committed), version)

    for label, other in strangers(who_is(producer)):
        yield end(label, other, True)
    yield end("nothing begun", who_is(producer), True)
    for committed in (True, False):
        if version < 5:
            producer.add((topic, 0))
        producer.produce(topic)
        for label, other in strangers(who_is(producer)):
            yield end(f"open, {label}", other, committed)
        ended = yield end("open", who_is(producer), committed)
        producer.settle()
        yield end("ended", who_is(producer), committed)
        yield end("ended", who_is(producer), not committed)
        if version >= 5:
            producer.producer_id, producer.epoch = ended.producer_id, ended.producer_epoch
            producer.settle()
            producer.begin()


def _offsets(wire: Wire, t: str, group: str, topic: str, version: int) -> Conversation:
    producer = ByHand(wire, f"{t}offsets{version}").begin()
    producer.begin()
    who = who_is(producer)

    def step(label: str, who: Who = who, group: str = group, topic: str = topic, **options: Any) -> Step:
        return Step(f"txn commit: {label}", committing(who, group, topic, version, **options), version)

    if version < 5:
        yield step("not added")
        producer.add_offsets(group)
    for label, other in strangers(who):
        yield step(label, other)
    yield step("well")
    yield step("too long a note", metadata="x" * 4097)
    yield step("no such partition", partition=9)
    yield step("no such topic", topic=f"{t}never")
    yield step("no group", group="")
    if version >= 3:
        yield step("a stranger", member="nobody", generation=1)
        yield step("a generation without a member", generation=1)
        yield step("a member without a generation", member="nobody")
    producer.end(committed=False, version=5 if version >= 5 else None)
    producer.settle()
    yield step("after the end")


def _looks(wire: Wire, t: str, topic: str) -> Conversation:
    producer = ByHand(wire, f"{t}look", TV2).begin()
    producer.produce(topic)
    names = [producer.name, f"{t}nobody", ""]
    yield Step("describe transactions", m.DescribeTransactionsRequest(names), 0)
    kind = m.ListTransactionsRequest
    for version in versions(66):
        for states in ([], ["Ongoing"], ["ongoing"], ["Nonsense"], ["Empty", "Nonsense"]):
            asked = kind(states, [producer.producer_id])
            yield Step(f"list transactions: {states}", asked, version)
        yield Step("list transactions: no such producer", kind([], [987_654_321]), version)
    yield Step("list transactions: long ones", kind([], [producer.producer_id], 3_600_000), 1)
    for pattern in (f"{t}lo.k", "look", "(", "*", r"(a)\1", "((a{100}){100}){100}", ""):
        asked = kind([], [producer.producer_id], -1, pattern)
        yield Step(f"list transactions: like {pattern.removeprefix(t)}", asked, latest(66))
    producer.end(committed=True)
    producer.settle()


def _markers(wire: Wire, t: str, topic: str) -> Conversation:
    kind = m.WriteTxnMarkersRequest
    for version in versions(27):
        producer = ByHand(wire, f"{t}marker{version}", TV2).begin()
        producer.begin()
        producer.produce(topic)
        for label, epoch, coordinator_epoch, place in (
            ("no such topic", producer.epoch + 1, 0, (f"{t}never", 0)),
            ("no such partition", producer.epoch + 1, 0, (topic, 9)),
            ("an old epoch", producer.epoch - 1, 0, (topic, 0)),
            ("its own epoch", producer.epoch, 0, (topic, 0)),
            ("again", producer.epoch, 0, (topic, 0)),
            ("an old coordinator", producer.epoch + 1, -1, (topic, 0)),
        ):
            where = kind.WritableTxnMarkerTopic(place[0], [place[1]])
            marker = kind.WritableTxnMarker(producer.producer_id, epoch, False, [where], coordinator_epoch)
            yield Step(f"marker: {label}", kind([marker]), version)


def sequences(wire: Wire, t: str) -> Conversation:
    """Produce by producers with an id: gaps, repeats, old epochs, unknown ids, other people's names."""
    topic = f"{t}t"
    create_topic(wire, topic, 2, KEPT)
    ready(wire, t)
    for version in range(3, 13):
        yield from _idempotent(wire, topic, version)
        yield from _in_transactions(wire, t, topic, version)


def _idempotent(wire: Wire, topic: str, version: int) -> Conversation:
    producer_id, _ = fresh_producer_id(wire)

    def step(label: str, sequence: int, epoch: int = 0, count: int = 1, producer_id: int = producer_id) -> Step:
        request = producing(topic, ("", producer_id, epoch), sequence, count=count, transactional=False)
        return Step(f"sequence: {label}", request, version)

    yield step("the first", 0, epoch=1)
    yield step("the next", 1, epoch=1, count=2)
    yield step("the same again", 1, epoch=1, count=2)
    yield step("part of it again", 1, epoch=1)
    yield step("a gap", 9, epoch=1)
    yield step("none", -1, epoch=1)
    yield step("an old epoch", 3, epoch=0)
    yield step("a new epoch in the middle", 3, epoch=2)
    yield step("a new epoch", 0, epoch=2)
    yield step("an unknown producer in the middle", 7, producer_id=producer_id + 500_000)


def _in_transactions(wire: Wire, t: str, topic: str, version: int) -> Conversation:
    producer = ByHand(wire, f"{t}seq{version}", TV1 if version < 12 else TV2).begin()
    producer.begin()
    who = who_is(producer)

    def step(label: str, who: Who, sequence: int, **options: Any) -> Step:
        return Step(f"in a transaction: {label}", producing(topic, who, sequence, **options), version)

    if version < 12:
        yield step("not added", who, 0)
        producer.add((topic, 0))
    for label, other in strangers(who):
        # What Kafka lets in goes to the other partition: the offsets here are compared.
        yield step(label, other, 0, partition=int(label == "no producer"))
    yield step("no transactional id", who, 0, name=None)
    yield step("not from the start", who, 4)
    yield step("the first", who, 0)
    yield step("the same again", who, 0)
    yield step("a gap", who, 5)
    yield step("a batch outside of it", who, 1, transactional=False)
    yield step("the epoch before", (who[0], who[1], who[2] - 1), 1)
    producer.end(committed=False)
    producer.settle()
    yield step("too late", who, 1)


TRANSACTION_CONVERSATIONS = {"transactions": transactions, "sequences": sequences}
