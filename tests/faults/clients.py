"""Producers and consumers of three languages behind two ports, so that one writer and one reader serve them all.

librdkafka is in this process. Java and Go are children that are spoken to by lines (tests/wire/java/Faults.java,
tests/wire/go/faults.go). Values are numbers written as text, each sent once. All are configured as a careful user does,
with short backoffs so that what is measured is the cluster and not the client's patience.
"""

import contextlib
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Protocol

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.faults.door import CLIENT
from tests.support.clients.foreign import apache_java, franz_go
from tests.support.programs import Dialogue

PADDING: Final = b"." * 120
NEAR_END: Final = 500
"""Records before the end at which a consumer begins that does not begin at the beginning."""
FIND_END_S: Final = 15.0
"""Longer than a leader is silent before another leads."""
POLL_S: Final = 0.2
FLUSH_S: Final = 130.0
"""Longer than the 120 s for which a send is tried."""

Delivered = Callable[[int | None, str], None]
"""Is told the offset of a record that was acknowledged, and what went wrong, if anything did. The offset may be
unknown: a leader that recognises a record as a repetition may have forgotten where it stands."""
Record = tuple[int, int, int]
"""Partition, offset, value."""


class Place(NamedTuple):
    """Where clients work."""

    bootstrap: str
    topic: str
    partitions: int
    directory: Path
    """Where children leave what they print as errors."""


class Sender(Protocol):
    """One producer. It tells what became of each send from within `serve` and `finish`."""

    broken: str
    """Why it has to be replaced, once it has to."""

    def send(self, partition: int, value: int, delivered: Delivered) -> None: ...

    def serve(self, seconds: float) -> None:
        """Waits for so long at most."""

    def finish(self) -> None:
        """Returns when the fate of all sends has been told."""


class Follower(Protocol):
    """One consumer at a time, which reads what is committed, by assignment of all partitions."""

    def assign(self, *, near_end: bool) -> None:
        """A new consumer, at the beginning or near the end."""

    def poll(self) -> list[Record]: ...

    def close(self) -> None: ...


class Language(Protocol):
    """A client library."""

    name: ClassVar[str]

    def sender(self, place: Place, acks: str) -> Sender: ...

    def follower(self, place: Place) -> Follower: ...


def encoded(value: int) -> bytes:
    return b"%d %s" % (value, PADDING)


def decoded(message: Message) -> int:
    payload = message.value()
    assert isinstance(payload, bytes)
    return int(payload[: payload.index(b" ")])


def reading(bootstrap: str, **more: str | int | bool) -> Consumer:
    return Consumer(
        {
            **CLIENT,
            "bootstrap.servers": bootstrap,
            "group.id": "faults",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
            **{name.replace("_", "."): value for name, value in more.items()},
        },
        error_cb=lambda error: None,
    )


class LibrdkafkaSender:
    def __init__(self, place: Place, acks: str) -> None:
        self.broken = ""
        self._topic = place.topic
        settings = {
            **CLIENT,
            "bootstrap.servers": place.bootstrap,
            "acks": acks,
            "enable.idempotence": acks == "all",
            "linger.ms": 2,
            "delivery.timeout.ms": 120_000,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 200,
        }
        self._producer = Producer(settings, error_cb=self._on_error)

    def send(self, partition: int, value: int, delivered: Delivered) -> None:
        def told(error: KafkaError | None, message: Message) -> None:
            delivered(None if error else message.offset(), str(error) if error else "")

        self._producer.produce(self._topic, encoded(value), partition=partition, on_delivery=told)

    def serve(self, seconds: float) -> None:
        self._producer.poll(seconds)

    def finish(self) -> None:
        self._producer.flush(FLUSH_S)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.broken = f"fatal: {error}"


class LibrdkafkaFollower:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._consumer: Consumer | None = None

    def assign(self, *, near_end: bool) -> None:
        self.close()
        consumer = self._consumer = reading(self._place.bootstrap)
        places = [TopicPartition(self._place.topic, p, OFFSET_BEGINNING) for p in range(self._place.partitions)]
        for place in places if near_end else ():
            place.offset = near_end_of(consumer, place)
        consumer.assign(places)

    def poll(self) -> list[Record]:
        assert self._consumer is not None
        return records(self._consumer.consume(500, POLL_S))

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


def near_end_of(consumer: Consumer, place: TopicPartition) -> int:
    """Asked here. An assignment may say it as well, from -2000 downwards, but then librdkafka asks a second leader when
    the first one is slow, begins at what one of them says, and a second later once more at what the other says."""
    deadline = time.monotonic() + FIND_END_S
    while time.monotonic() < deadline:
        with contextlib.suppress(KafkaException):
            first, end = consumer.get_watermark_offsets(place, timeout=1)
            return max(first, end - NEAR_END)
    return OFFSET_BEGINNING


def records(messages: Sequence[Message]) -> list[Record]:
    """In the order they came, without what is no record."""
    found = []
    for message in messages:
        partition, offset = message.partition(), message.offset()
        if message.error() is None and partition is not None and offset is not None:
            found.append((partition, offset, decoded(message)))
    return found


class Librdkafka:
    name: ClassVar[str] = "librdkafka"

    def sender(self, place: Place, acks: str) -> Sender:
        return LibrdkafkaSender(place, acks)

    def follower(self, place: Place) -> Follower:
        return LibrdkafkaFollower(place)


class ForeignSender:
    """A producer in a child. One that failed a send is replaced: what it would do next is its library's choice."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.broken = ""
        self._name = name
        self._dialogue = Dialogue(name, command, log)
        self._waiting: dict[int, Delivered] = {}
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, name=f"answers of {name}", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        for line in self._dialogue.heard():
            self._answers.put(line)

    def send(self, partition: int, value: int, delivered: Delivered) -> None:
        self._waiting[value] = delivered
        try:
            self._dialogue.say(f"send {partition} {encoded(value).decode()}")
        except BrokenPipeError:
            self.broken = f"{self._name} has died"

    def serve(self, seconds: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._take(self._answers.get(timeout=seconds))
            while True:
                self._take(self._answers.get_nowait())

    def finish(self) -> None:
        self._dialogue.hang_up()
        deadline = time.monotonic() + FLUSH_S
        while self._waiting and self._listener.is_alive() and time.monotonic() < deadline:
            self.serve(0.1)
        self._dialogue.kill()
        self._listener.join()
        self.serve(0)
        self._dialogue.close()
        for delivered in self._waiting.values():
            delivered(None, f"{self._name} has not said what became of it")
        self._waiting.clear()

    def _take(self, line: str) -> None:
        outcome, value, rest = line.rstrip("\n").split(" ", 2)
        delivered = self._waiting.pop(int(value))
        if outcome == "ok":
            delivered(int(rest) if int(rest) >= 0 else None, "")
        else:
            self.broken = f"{self._name} failed a send: {rest}"
            delivered(None, rest)


class ForeignFollower:
    """A child that has one consumer after the other: to start a JVM for each would cost more than what it does."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self._dialogue = Dialogue(name, command, log)

    def assign(self, *, near_end: bool) -> None:
        self._dialogue.ask(f"assign {NEAR_END if near_end else 'begin'}")

    def poll(self) -> list[Record]:
        words = self._dialogue.ask(f"poll {POLL_S * 1000:.0f}").split()[1:]
        found = (map(int, word.split(":")) for word in words)
        return [(partition, offset, value) for partition, offset, value in found]

    def close(self) -> None:
        self._dialogue.close()


class Foreign(ABC):
    name: ClassVar[str]

    def __init__(self) -> None:
        self._command = self.command()

    @abstractmethod
    def command(self) -> list[str]:
        """How the program is run, built first if need be. pytest's skip where its tools are missing."""

    def sender(self, place: Place, acks: str) -> Sender:
        words = [*self._command, "write", place.bootstrap, place.topic, acks]
        return ForeignSender(f"{self.name} writer", words, place.directory / f"{self.name}-writer.log")

    def follower(self, place: Place) -> Follower:
        words = [*self._command, "read", place.bootstrap, place.topic, str(place.partitions)]
        return ForeignFollower(f"{self.name} reader", words, place.directory / f"{self.name}-reader.log")


class Java(Foreign):
    name: ClassVar[str] = "java"

    def command(self) -> list[str]:
        return apache_java("Faults")


class Go(Foreign):
    name: ClassVar[str] = "go"

    def command(self) -> list[str]:
        return [str(franz_go())]


LANGUAGES: Final[dict[str, Callable[[], Language]]] = {"librdkafka": Librdkafka, "java": Java, "go": Go}


def at_hand(names: Sequence[str]) -> tuple[list[Language], list[str]]:
    """The clients that can be had here, and what is missing for the others."""
    able, reasons = list[Language](), []
    for name in names:
        try:
            able.append(LANGUAGES[name]())
        except pytest.skip.Exception as missing:
            reasons.append(f"{name} clients are left out: {missing}")
    return able, reasons
