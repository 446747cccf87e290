"""A process that copies `source` to `target`, exactly once: read, change, write and commit in one transaction.

It belongs to a group and may be killed at any moment; whoever is started under the same name goes on. Everything it
does is one line on its standard output, so that a test can strike at a chosen step.
"""

import random
import signal
import sys
from typing import Any, NoReturn

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

DEADLINE_S = 90.0
SOURCE, TARGET, GROUP = "source", "target", "copiers"
LARGEST = 3_000
ABORTED_SHARE = 0.25
"""So large that the tenth a test asks for is there, however the dice fall."""

BEGUN, WRITTEN, OFFSETS_SENT, COMMITTED, ABORTED, RECOVERED, IDLE = (
    "begun",
    "written",
    "offsets-sent",
    "committed",
    "aborted",
    "recovered",
    "idle",
)
"""The steps. Each line is the step and how many records it is about."""

QUICK = {
    "log_level": 0,
    # Without these librdkafka may sit still for ten seconds, or for good, when the broker comes back.
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "metadata.recovery.strategy": "none",
}


def transformed(value: bytes) -> bytes:
    return b"<" + value + b">"


class Copier:
    def __init__(self, bootstrap: str, name: str, seed: int, *, static: bool) -> None:
        self._name = name
        self._dice = random.Random(seed)
        self._common: dict[str, Any] = {**QUICK, "bootstrap.servers": bootstrap}
        self._moved = False
        """Partitions came or went: what has been read may be somebody else's by now."""
        self.leaving = False
        # Half of all copiers are static members: a restart of theirs is no rebalance.
        membership: dict[str, Any] = {"group.instance.id": name} if static else {}
        self._consumer = Consumer(
            {
                **self._common,
                **membership,
                "group.id": GROUP,
                "session.timeout.ms": 2_000,
                "heartbeat.interval.ms": 200,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 50,
                "retry.backoff.ms": 20,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe([SOURCE], on_assign=self._rebalanced, on_revoke=self._rebalanced)
        while not self.leaving:
            try:
                producer = self._new_producer()
                self._rewind()
                while not self.leaving:
                    self._turn(producer)
            except KafkaException as error:
                # The node was killed, or this producer is of no use any more: only the coordinator knows how its last
                # transaction ended, and the next producer of this name makes it tell.
                tell(RECOVERED, 0, str(error))
        self._consumer.close()

    def _rebalanced(self, *_: object) -> None:
        self._moved = True

    def _new_producer(self) -> Producer:
        producer = Producer(
            {**self._common, "transactional.id": self._name, "linger.ms": 1, "transaction.timeout.ms": 10_000}
        )
        producer.init_transactions(DEADLINE_S)
        return producer

    def _turn(self, producer: Producer) -> None:
        read = self._consumer.consume(self._dice.randint(1, LARGEST), 0.2)
        messages = [message for message in read if message.error() is None]
        if self._moved:
            self._rewind()
        elif messages:
            self._transaction(producer, messages)
        else:
            tell(IDLE, 0)

    def _transaction(self, producer: Producer, messages: list[Message]) -> None:
        try:
            if self._is_committed(producer, messages):
                tell(COMMITTED, len(messages))
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        producer.abort_transaction(DEADLINE_S)
        tell(ABORTED, len(messages))
        self._rewind()

    def _is_committed(self, producer: Producer, messages: list[Message]) -> bool:
        producer.begin_transaction()
        tell(BEGUN, len(messages))
        ends: dict[int, int] = {}
        for message in messages:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None and offset is not None and value is not None
            producer.produce(TARGET, transformed(value), partition=partition)
            ends[partition] = offset + 1
        tell(WRITTEN, len(messages))
        offsets = [TopicPartition(SOURCE, partition, end) for partition, end in ends.items()]
        producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), DEADLINE_S)
        tell(OFFSETS_SENT, len(messages))
        if self._dice.random() < ABORTED_SHARE:
            return False
        producer.commit_transaction(DEADLINE_S)
        return True

    def _rewind(self) -> None:
        """Goes back to what is committed."""
        self._moved = False
        assigned = self._consumer.assignment()
        if not assigned:
            return
        for place in self._consumer.committed(assigned, DEADLINE_S):
            if place.error is not None:
                raise KafkaException(place.error)
            try:
                self._consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE:  # not assigned any more
                    raise
                self._moved = True


def tell(step: str, count: int, detail: str = "") -> None:
    sys.stdout.write(f"{step} {count} {detail}".rstrip() + "\n")
    sys.stdout.flush()


def main(bootstrap: str, name: str, seed: str, membership: str) -> NoReturn:
    copier = Copier(bootstrap, name, int(seed), static=membership == "static")

    def leave(*_: object) -> None:
        copier.leaving = True

    signal.signal(signal.SIGTERM, leave)
    copier.run()
    sys.exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
