"""Java's Connect with one connector, standalone: how much it carries in a second.

All that is to be carried lies there when it starts. The rate is that of what has arrived after the first third of it,
so the start of Java does not count.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.kafka_jars import java_command
from bench.process_cost import Meter
from bench.streams_runs import POLL_SECONDS, Progress, steady

PATIENCE_SECONDS = 900.0
WORKER = """\
bootstrap.servers={bootstrap}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename={directory}/offsets
offset.flush.interval.ms=1000
listeners=http://127.0.0.1:0
"""


def rate_of(
    context: Context, bootstrap: str, config: Mapping[str, str], jars: Path, seen: Callable[[], float], goal: float
) -> tuple[float, float]:
    """In a second, and CPU seconds of one million, of what `seen` counts."""
    directory = context.directory / config["name"]
    directory.mkdir()
    worker, connector = directory / "worker.properties", directory / "connector.properties"
    worker.write_text(WORKER.format(bootstrap=bootstrap, directory=directory))
    connector.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    program = "org.apache.kafka.connect.cli.ConnectStandalone"
    command = java_command(program, str(worker), str(connector), heap="-Xmx1g", jars=jars)
    log = directory / "log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            return steady(_observed(process, seen, goal, log), int(goal))
        except ToolFailed as failed:
            raise ToolFailed(f"{config['name']} of Java's Connect: {failed}") from failed
        finally:
            process.send_signal(signal.SIGKILL)


def _observed(process: "subprocess.Popen[bytes]", seen: Callable[[], float], goal: float, log: Path) -> list[Progress]:
    progress = [Progress(time.perf_counter(), 0, 0.0)]
    meter, deadline = Meter(process.pid), time.monotonic() + PATIENCE_SECONDS
    while progress[-1].committed < goal * 0.999:  # lines have no end of their own in a topic
        if process.poll() is not None or time.monotonic() > deadline:
            raise ToolFailed(f"Java carried {progress[-1].committed} of {goal}:\n{log.read_text()[-2000:]}")
        time.sleep(POLL_SECONDS)
        used, found = meter.total(), int(seen())
        if found > progress[-1].committed:
            progress.append(Progress(time.perf_counter(), found, used))
    return progress


@contextmanager
def counted(bootstrap: str, topic: str) -> Iterator[Callable[[], int]]:
    """How many records are in a topic of one partition, which is made now: to ask for one that is not there takes as
    long as Java may need for all of it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        done.result(PATIENCE_SECONDS)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "log_level": 0})
    try:
        yield lambda: int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1])
    finally:
        consumer.close()
