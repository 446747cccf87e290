"""A transactional producer by hand: every request at the version a test asks for."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.batch import TRANSACTIONAL
from tests.support.requests import ZERO_ID, batch
from tests.support.wire import Deadline, Wire

TV1 = {0: 11, 24: 3, 25: 3, 26: 4, 28: 4}
"""Key -> version: the newest way in which a client can still do without KIP-890's second part."""
TV2 = {0: 12, 26: 5, 28: 5}

COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
CONCURRENT_TRANSACTIONS = 51
_NOT_YET = (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


class ByHand:
    """One transactional id. The producer id and epoch are what the server last said, or what a test puts there."""

    def __init__(self, wire: Wire, name: str, versions: Mapping[int, int] = TV1) -> None:
        self.wire = wire
        self.name = name
        self.versions = versions
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def find(self) -> None:
        """The coordinator's topic is made when somebody first asks."""
        deadline = Deadline(f"a coordinator for {self.name}")
        asked = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name])
        while (found := self.wire.ask(asked).coordinators[0]).error_code:
            deadline.check(found)

    def init(
        self, *, expected: tuple[int, int] = (-1, -1), timeout_ms: int = 60_000, version: int | None = None
    ) -> tuple[int, int, int]:
        """Error, producer id and epoch; waits out what is only not ready yet."""
        request = m.InitProducerIdRequest(self.name, timeout_ms, *(expected if version is None or version > 2 else ()))
        deadline = Deadline(f"an answer to InitProducerId of {self.name}")
        while (answer := self.wire.ask(request, version)).error_code in _NOT_YET:
            deadline.check(answer)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    def begin(self, **options: Any) -> "ByHand":
        """Finds the coordinator and takes an epoch, waiting until a predecessor's transaction is over."""
        self.find()
        deadline = Deadline(f"an epoch for {self.name}")
        while (answer := self.init(**options))[0] == CONCURRENT_TRANSACTIONS:
            deadline.check(answer)
        assert answer[0] == 0, answer
        _, self.producer_id, self.epoch = answer
        self.sequences.clear()
        return self

    def add(self, *partitions: tuple[str, int], version: int = 3) -> dict[tuple[str, int], int]:
        topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                topic(name, [index for other, index in partitions if other == name])
                for name in dict.fromkeys(name for name, _ in partitions)
            ],
        )
        return _errors(self.wire.ask(request, version).results_by_topic_v3_and_below)

    def verify(self, *partitions: tuple[str, int], add: bool = False, version: int = 5) -> dict[tuple[str, int], int]:
        kind = m.AddPartitionsToTxnRequest
        topics = [kind.AddPartitionsToTxnTopic(name, [index]) for name, index in partitions]
        asked = kind.AddPartitionsToTxnTransaction(self.name, self.producer_id, self.epoch, not add, topics)
        (result,) = self.wire.ask(kind(transactions=[asked]), version).results_by_transaction
        return _errors(result.topic_results)

    def add_offsets(self, group: str, version: int = 3) -> int:
        request = m.AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, group)
        return int(self.wire.ask(request, version).error_code)

    def commit_offsets(
        self, group: str, topic: str, offset: int, *, member: str = "", generation: int = -1, version: int | None = None
    ) -> int:
        kind = m.TxnOffsetCommitRequest
        version = version or self.versions[28]
        member_of: dict[str, Any] = {"generation_id": generation, "member_id": member} if version >= 3 else {}
        request = kind(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[kind.TxnOffsetCommitRequestTopic(topic, [kind.TxnOffsetCommitRequestPartition(0, offset)])],
            **member_of,
        )
        deadline = Deadline(f"a commit of {group}")
        while True:
            answer = self.wire.ask(request, version)
            error = answer.topics[0].partitions[0].error_code
            if error not in _NOT_YET:
                return int(error)
            deadline.check(answer)

    def produce(
        self,
        topic: str,
        partition: int = 0,
        *,
        count: int = 1,
        version: int | None = None,
        sequence: int | None = None,
        transactional_id: str | None = "",
    ) -> tuple[int, int]:
        """Error and base offset. The sequence goes on where the last produce to this partition ended."""
        version = version or self.versions[0]
        place = (topic, partition)
        first = self.sequences.get(place, 0) if sequence is None else sequence
        data = batch(
            count,
            start=int(time.time() * 1000),  # markers bear the time of day: one segment is to hold both
            attributes=TRANSACTIONAL,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first,
        )
        part = m.ProduceRequest.PartitionProduceData(index=partition, records=data)
        request = m.ProduceRequest(
            transactional_id=self.name if transactional_id == "" else transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[m.ProduceRequest.TopicProduceData(topic, ZERO_ID, [part])],
        )
        (result,) = self.wire.ask(request, version).responses[0].partition_responses
        if not result.error_code and sequence is None:
            self.sequences[place] = first + count
        return result.error_code, result.base_offset

    def end(self, *, committed: bool, version: int | None = None) -> int:
        """Takes over the epoch that the answer brings."""
        version = version or self.versions[26]
        request = m.EndTxnRequest(self.name, self.producer_id, self.epoch, committed)
        deadline = Deadline(f"the end of a transaction of {self.name}")
        while (answer := self.wire.ask(request, version)).error_code in (*_NOT_YET, CONCURRENT_TRANSACTIONS):
            deadline.check(answer)
        if version >= 5 and not answer.error_code:
            if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
                self.sequences.clear()
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)

    def describe(self) -> Any:
        (state,) = self.wire.ask(m.DescribeTransactionsRequest(transactional_ids=[self.name])).transaction_states
        return state

    def settle(self) -> Any:
        """Waits until no marker is missing."""
        deadline = Deadline(f"the markers of {self.name}")
        while (state := self.describe()).transaction_state.startswith("Prepare"):
            deadline.check(state)
        return state


def _errors(results: Sequence[Any]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, part.partition_index): part.partition_error_code
        for topic in results
        for part in topic.results_by_partition
    }
