"""Brokers that go away and come back are waited for, whatever an application is doing at that moment."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from ottla.streams import StreamsBuilder
from ottla.testing import Cluster
from tests.spark.applications import NATIVE, TASKS, World, driven, lasts, lines_of
from tests.support.patience import eventually

pytestmark = pytest.mark.usefixtures("spark")

AWAY_S = 6.0
"""How long there is no broker."""
APPLICATIONS = {"sessions": TASKS["sessions"], "words": NATIVE["words"]}


@pytest.fixture
def mortal_kafka() -> Iterator[Cluster]:
    with Cluster(1, log_retention_check_interval_ms=86_400_000) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("topology", "moment"),
    [
        pytest.param("words", "right after RUNNING", marks=pytest.mark.matrix),
        ("words", "with a batch pending"),
        pytest.param("sessions", "right after RUNNING", marks=pytest.mark.matrix),
        pytest.param("sessions", "with a batch pending", marks=pytest.mark.matrix),
    ],
)
def test_an_application_outlives_a_broker_that_is_away_for_seconds(
    mortal_kafka: Cluster, tmp_path: Path, topology: str, moment: str
) -> None:
    with Client(parse_bootstrap(mortal_kafka.bootstrap_servers)) as client:
        world = World(client, mortal_kafka.bootstrap_servers, "outlives", tmp_path)
        lines, _, out = world.topic("lines"), world.topic("others"), world.topic("out")
        builder = StreamsBuilder()
        APPLICATIONS[topology](builder, lines, f"{world.name}.others", out)
        records = lines_of(3, [lines], 120)
        wanted = lasts(driven(builder, records, out))
        # A cache would hold back ends of sessions that the test driver shows.
        settings = {"statestore.cache.max.bytes": 0} if topology == "sessions" else {}
        runner = world.app(builder, **settings).runner()
        failures: list[BaseException] = []

        def run() -> None:
            try:
                runner.run()
            except BaseException as error:  # noqa: BLE001  told below
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            eventually(lambda: runner.state == "RUNNING" or bool(failures), "it runs")
            if moment == "with a batch pending":
                world.send(records[:60])
            mortal_kafka.kill(1)
            time.sleep(AWAY_S)
            mortal_kafka.restart(1)
            world.send(records[60:] if moment == "with a batch pending" else records)
            eventually(lambda: bool(failures) or world.last(out) == wanted, "all results are out")
        finally:
            runner.stop()
            thread.join()
        assert failures == []
        assert world.last(out) == wanted
