"""Instances of a streams application: one is active, another takes over when it is gone."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.reach import Reach
from ottla.pipelines.job import CannotStart
from ottla.streams.run.instances import SESSION_MS, Instance, await_nobody, instances_of
from ottla.testing import Cluster
from tests.support.patience import eventually

ALIVE = """
import sys, time
from ottla.client.reach import Reach
from ottla.streams.run.instances import Instance
with Instance(Reach(sys.argv[1]), sys.argv[2]) as one:
    print(one.wait(20), flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(1) as cluster:
        yield cluster


def test_the_second_stands_by_and_follows_the_first_that_leaves(kafka: Cluster) -> None:
    servers = kafka.bootstrap_servers
    with Instance(Reach(servers), "leaving") as second:
        with Instance(Reach(servers), "leaving") as first:
            eventually(lambda: first.wait(0) or second.wait(0), "one is active")
            active, other = (first, second) if first.wait(0) else (second, first)
            eventually(lambda: other.active is not None, "the other knows")
            assert not other.wait(0)
            with Client(parse_bootstrap(servers)) as client:
                eventually(lambda: [each.active for each in instances_of(client, "leaving")] == [True, False], "both")
        assert second.wait(5)
        assert active is second or not second.superseded


def test_one_that_is_killed_is_followed_within_seconds(kafka: Cluster) -> None:
    servers = kafka.bootstrap_servers
    killed = subprocess.Popen([sys.executable, "-c", ALIVE, servers, "killed"], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None and killed.stdout.readline() == "True\n"
    with Instance(Reach(servers), "killed") as successor:
        eventually(lambda: successor.active is not None, "it stands by")
        killed.kill()
        killed.wait()
        killed.stdout.close()
        began = time.monotonic()
        assert successor.wait(15)
        assert time.monotonic() - began < SESSION_MS / 1000 + 4


def test_a_run_that_takes_no_turns_is_refused_beside_an_active_one(kafka: Cluster) -> None:
    with (
        Client(parse_bootstrap(kafka.bootstrap_servers)) as client,
        Instance(Reach(kafka.bootstrap_servers), "once") as active,
    ):
        await_nobody(client, "nobody")
        assert active.wait(10)
        with pytest.raises(CannotStart, match="once is active as process"):
            await_nobody(client, "once")


def test_status_tells_who_is_active_and_who_stands_by(kafka: Cluster) -> None:
    servers = kafka.bootstrap_servers
    with Instance(Reach(servers), "both") as first, Instance(Reach(servers), "both") as second:
        eventually(lambda: first.wait(0) != second.wait(0), "one is active")
        with Client(parse_bootstrap(servers)) as client:
            eventually(lambda: len(instances_of(client, "both")) == 2, "the brokers know both")
        command = [sys.executable, "-m", "ottla", "streams", "status", "--application-id", "both", "-b", servers]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert [line.split(":")[0].strip() for line in said.splitlines()[1:]] == ["active", "stands by"]
