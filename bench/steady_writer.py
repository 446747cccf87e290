"""A producer that sends at a steady pace while nodes come and go, and remembers when each record was acknowledged."""

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from bench.java_tools import ToolFailed

POLL_SECONDS = 0.001
PATIENCE_SECONDS = 130.0


class Sent(NamedTuple):
    """Times of time.perf_counter()."""

    partition: int
    began: float
    ended: float
    error: str | None

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class SteadyWriter(threading.Thread):
    """librdkafka, acks=all, idempotent, its defaults else but for a delivery timeout of two minutes, as Java's has.

    A record counts from when it was due: a writer that is held up must not make the servers look fast.
    """

    def __init__(self, bootstrap: str, topic: str, *, partitions: int, rate: int, size: int) -> None:
        super().__init__(name=f"writer to {topic}", daemon=True)
        self.sent: list[Sent] = []
        self._topic = topic
        self._partitions = partitions
        self._rate = rate
        self._value = b"x" * size
        self._settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "delivery.timeout.ms": 120_000,
            "log_level": 0,
        }
        self._ending = threading.Event()

    def __enter__(self) -> "SteadyWriter":
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Waits for the last acknowledgements, unless something went wrong already."""
        self._ending.set()
        self.join(PATIENCE_SECONDS if kind is None else 0)

    def run(self) -> None:
        producer = Producer(self._settings)
        began = time.perf_counter()
        for number in count():
            due = began + number / self._rate
            while (wait := due - time.perf_counter()) > 0:
                producer.poll(min(wait, POLL_SECONDS))
            if self._ending.is_set():
                break
            self._send(producer, number % self._partitions, due)
            producer.poll(0)
        producer.flush(PATIENCE_SECONDS)

    def _send(self, producer: Producer, partition: int, due: float) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            text = None if error is None else str(error)
            self.sent.append(Sent(partition, due, time.perf_counter(), text))

        producer.produce(self._topic, self._value, partition=partition, on_delivery=delivered)

    def written_since(self, moment: float) -> dict[int, float]:
        """Partition to the seconds from `moment` until it acknowledged a record that was sent after `moment`."""
        first: dict[int, float] = {}
        for one in self.sent:
            if one.began >= moment and one.error is None and one.partition not in first:
                first[one.partition] = one.ended - moment
        return first

    def wait_written_since(self, moment: float) -> dict[int, float]:
        """As soon as every partition has acknowledged one."""
        return self._wait(lambda: self.written_since(moment))

    def _wait(self, ask: Callable[[], dict[int, float]]) -> dict[int, float]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found := ask()) < self._partitions:
            if time.monotonic() > deadline or not self.is_alive():
                raise ToolFailed(f"only partitions {sorted(found)} are written to after {PATIENCE_SECONDS:.0f} s")
            time.sleep(0.01)
        return found
