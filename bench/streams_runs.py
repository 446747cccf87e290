"""A streams application at work, Java's or ours: its input is there before it starts, its committed offsets tell how
far it is."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.java_tools import ToolFailed
from bench.kafka_jars import JAVA_SOURCES, java_command
from bench.process_cost import Meter
from bench.servers import Server

HERE = Path(__file__).parent / "streams"
VOCABULARY = 10_000
WORDS_IN_LINE = 5
KEYS = 1_000
LINES_PER_SECOND_OF_EVENT_TIME = 5_000
BEGAN_MS = 1_700_000_000_000
PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.05


class Progress(NamedTuple):
    """Moments at which more was committed: seconds, records, CPU seconds of the application."""

    at: float
    committed: int
    cpu: float


def steadily(number: int) -> int:
    """Which key a line has: all in turn."""
    return number % KEYS


def in_sessions(number: int) -> int:
    """A tenth of the keys at a time, for four seconds of event time."""
    keys = KEYS // 10
    return number // (4 * LINES_PER_SECOND_OF_EVENT_TIME) % 10 * keys + number % keys


def feed(server: Server, topic: str, lines: int, partitions: int, key_of: Callable[[int], int] = steadily) -> None:
    """Lines of five words; keys repeat, and timestamps advance evenly."""
    dice = random.Random(lines)
    words = [f"word{number}" for number in range(VOCABULARY)]
    rows = (
        (
            f"key{key_of(number)}",
            " ".join(dice.choices(words, k=WORDS_IN_LINE)),
            key_of(number) % partitions,
            BEGAN_MS + number * 1000 // LINES_PER_SECOND_OF_EVENT_TIME,
        )
        for number in range(lines)
    )
    produce(server, topic, rows)


def feed_table(server: Server, topic: str, partitions: int) -> None:
    """A row for each key, from before the lines."""
    rows = ((f"key{number}", f"row{number}", number % partitions, BEGAN_MS - 1) for number in range(KEYS))
    produce(server, topic, rows)


def produce(server: Server, topic: str, rows: Iterable[tuple[str, str, int, int]]) -> None:
    producer = Producer(
        {"bootstrap.servers": server.bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 100_000}
    )
    for key, value, partition, timestamp in rows:
        while True:
            try:
                producer.produce(topic, value, key, partition=partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise ToolFailed("the input of the streams application could not be written")


class Topics(NamedTuple):
    source: str
    target: str
    table: str = ""


def java_application(what: str, name: str, server: Server, state: Path, topics: Topics) -> list[str]:
    arguments = (what, name, server.bootstrap, str(state), *topics)
    return java_command(str(JAVA_SOURCES / "StreamsApplication.java"), *arguments, heap="-Xmx1g")


def ottla_application(file: str, server: Server, state: Path) -> list[str]:
    run = [sys.executable, "-m", "ottla", "streams", "run", str(HERE / file)]
    return [*run, "--bootstrap", server.bootstrap, "--state-dir", str(state)]


@contextmanager
def running(command: Sequence[str], name: str, topics: Topics, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    named = {"BENCH_INPUT": topics.source, "BENCH_OUTPUT": topics.target, "BENCH_TABLE": topics.table}
    env = {**os.environ, **named, "BENCH_APPLICATION": name}
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=env, process_group=0) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def committed_of(server: Server, group: str, topic: str, partitions: int) -> int:
    """How many records of the topic the application is done with."""
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group, "log_level": 0})
    try:
        return sum(max(0, place.offset) for place in consumer.committed(places, timeout=5))
    except KafkaException:
        return 0
    finally:
        consumer.close()


def observed(
    process: "subprocess.Popen[bytes]", server: Server, group: str, topic: str, partitions: int, goal: int, log: Path
) -> list[Progress]:
    """Until the whole input is committed."""
    settings = {"bootstrap.servers": server.bootstrap, "group.id": group, "log_level": 0}
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    seen = [Progress(time.perf_counter(), 0, 0.0)]
    meter = Meter(process.pid)
    consumer = Consumer(settings, error_cb=lambda error: None)
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while seen[-1].committed < goal:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = log.read_text(errors="replace")[-2000:]
                raise ToolFailed(f"{group} committed {seen[-1].committed} of {goal} records:\n{tail}")
            time.sleep(POLL_SECONDS)
            used = meter.total()
            try:
                found = sum(max(0, place.offset) for place in consumer.committed(places, timeout=5))
            except KafkaException:
                continue
            if found > seen[-1].committed:
                seen.append(Progress(time.perf_counter(), found, used))
    finally:
        consumer.close()
    return seen


def steady(seen: Sequence[Progress], goal: int) -> tuple[float, float]:
    """Records per second and CPU seconds per million, once a third is done: by then all that compiles is compiled."""
    begun = next(each for each in seen if each.committed * 3 >= goal)
    ended = seen[-1]
    done = ended.committed - begun.committed
    if done <= 0:
        raise ToolFailed("everything was committed at once: too little to measure")
    return done / (ended.at - begun.at), (ended.cpu - begun.cpu) / done * 1e6


def behind_the_start(seen: Sequence[Progress], goal: int) -> tuple[float, float]:
    """The same of whoever commits in a few large portions: of the last of them, if the one before it is not as far."""
    begun, ended = next((each for each in seen[1:-1] if each.committed * 3 >= goal), seen[-2]), seen[-1]
    done = ended.committed - begun.committed
    return done / (ended.at - begun.at), (ended.cpu - begun.cpu) / done * 1e6
