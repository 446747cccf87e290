"""One host, many jobs: each on its own, all of them exactly once, whoever dies."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.node.spark_host import SparkHost
from ottla.pipelines.door import Refused
from tests.spark.applications import START, Input, World
from tests.support.patience import eventually

ROOT = Path(__file__).parent.parent.parent
QUICK = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
APPLICATION = """
from ottla.streams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsApp, StreamsBuilder
from tests.spark.host_jobs import fails_while_told

def loud(text):
    fails_while_told({flag!r})
    return text.upper()

builder = StreamsBuilder()
lines = builder.stream({lines!r}, Consumed(Serdes.string, Serdes.string)).map_values(loud)
{rest}
app = StreamsApp({name!r}, builder.build(), bootstrap_servers={servers!r}, state_dir={state!r}, commit_interval_ms=100)
"""
SHOUT = "lines.to({out!r}, Produced(Serdes.string, Serdes.string))"
COUNT = (
    "lines.group_by_key(Grouped(Serdes.string, Serdes.string)).count("
    "Materialized('counts', Serdes.string, Serdes.long)).to_stream().to({out!r}, Produced(Serdes.string, Serdes.long))"
)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SparkHost]:
    found = SparkHost(tmp_path, "local[2]", QUICK)
    yield found
    found.close()


def application(world: World, name: str, rest: str) -> dict[str, object]:
    file = world.directory / f"{name.replace('-', '_')}.py"
    out = world.topic(f"{name}-out")
    text = APPLICATION.format(
        flag=str(world.directory / f"{name}-fails"),
        lines=f"{world.name}.lines",
        rest=rest.format(out=out),
        name=f"{world.name}-{name}",
        servers=world.bootstrap,
        state=str(world.directory / "state"),
    )
    file.write_text(text)
    return {"file": str(file)}


class Sender:
    """Sends lines and knows what it sent."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._topic = world.topic("lines")
        self.sent: list[tuple[bytes, bytes]] = []

    def send(self, number: int) -> None:
        first = len(self.sent)
        new = [(b"k%d" % (each % 7), b"line %d" % each) for each in range(first, first + number)]
        self._world.send([Input(self._topic, key, line, START + len(self.sent)) for key, line in new])
        self.sent += new


def told(world: World, name: str) -> Counter[tuple[bytes | None, bytes | None]]:
    return Counter((record.key, record.value) for record in world.read(f"{world.name}.{name}"))


def counts(world: World) -> dict[bytes | None, list[int]]:
    found: dict[bytes | None, list[int]] = {}
    for record in world.read(f"{world.name}.count-out"):
        found.setdefault(record.key, []).append(int.from_bytes(record.value or b"", "big"))
    return found


@pytest.mark.matrix
def test_two_applications_and_a_plain_writer_are_exactly_once_whoever_dies(host: SparkHost, world: World) -> None:
    sender = Sender(world)
    copied = world.topic("copied")
    jobs: dict[str, tuple[str, dict[str, object]]] = {
        "shout": ("ottla.streams.job:start", application(world, "shout", SHOUT)),
        "count": ("ottla.streams.job:start", application(world, "count", COUNT)),
        "copy": (
            "tests.spark.host_jobs:copy",
            {
                "servers": world.bootstrap,
                "checkpoint": str(world.directory / "copy"),
                "from": f"{world.name}.lines",
                "to": copied,
                "flag": str(world.directory / "copy-fails"),
            },
        ),
    }

    def all_out() -> bool:
        everything = Counter(sender.sent)
        loud = Counter({(key, value.upper()): number for (key, value), number in everything.items()})
        by_key = Counter(key for key, _ in sender.sent)
        last = {key: found[-1] for key, found in counts(world).items()}
        return told(world, "copied") == everything and told(world, "shout-out") == loud and last == dict(by_key)

    sender.send(100)
    with host.client() as client:
        for name, (entry, arguments) in jobs.items():
            client.start(name, entry, arguments)
        eventually(all_out, "the first lines")

        flags = [world.directory / f"{name}-fails" for name in jobs]
        for flag in flags:
            flag.touch()
        sender.send(100)
        eventually(lambda: all(each["failures"] for each in client.status().values()), "a failure of each job")
        for flag in flags:
            flag.unlink()
        eventually(all_out, "lines after each job has failed in the midst of a batch")

        sender.send(100)
        os.kill(client.pid(), signal.SIGKILL)
    sender.send(100)
    eventually(all_out, "lines after the host was killed; nobody told the new one what to run")

    with host.client() as client:
        for name in jobs:
            client.stop(name)
        assert client.status() == {name: {**client.status()[name], "state": "STOPPED", "reason": None} for name in jobs}
        sender.send(50)
        for name, (entry, arguments) in jobs.items():
            client.start(name, entry, arguments)
        eventually(all_out, "lines after each job was stopped and started")
        # Spark reports on a batch when what it wrote is out already.
        eventually(lambda: bool(client.progress("copy").get("sources")), "a report of the plain writer")
        assert client.progress("count")["state"] == "RUNNING"
    host.close()
    for found in counts(world).values():
        assert found == sorted(set(found))  # a count that was written twice, or fell back, would show


def test_a_job_that_cannot_start_says_why_and_leaves_the_others_alone(host: SparkHost, world: World) -> None:
    world.topic("lines")
    with host.client() as client:
        with pytest.raises(Refused, match=r"nobody: no\.such\.module cannot be imported"):
            client.start("nobody", "no.such.module:start")
        with pytest.raises(Refused, match="no name of a job"):
            client.start("a b", "m:f")
        with pytest.raises(Refused, match="there is no job 'nobody'; there are none"):
            client.stop("nobody")
        client.start("shout", "ottla.streams.job:start", application(world, "shout", SHOUT))
        client.start("refused", "tests.spark.host_jobs:refused")
        client.start("no-file", "ottla.streams.job:start", {"file": "nowhere.py"})
        eventually(lambda: client.status()["shout"]["state"] == "RUNNING", "a job that runs")
        eventually(lambda: client.status()["refused"]["state"] == "FAILED", "a job that fails")
        eventually(lambda: client.status()["no-file"]["state"] == "FAILED", "a job that fails")
        reasons = {name: each["reason"] for name, each in client.status().items()}
        assert reasons == {
            "shout": None,
            "refused": "the topic `nowhere` is not there: create it first",
            "no-file": "nowhere.py: there is no such file",
        }
        with pytest.raises(Refused, match="shout is there already"):
            client.start("shout", "ottla.streams.job:start", {})
