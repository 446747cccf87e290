"""What the tests with Spark share: one session for all of them, since starting one takes longer than most tests."""

import os
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from tests.spark.applications import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.testing import Cluster


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A session on two threads. What a test sets in its configuration it has to unset."""
    from ottla.pipelines.session import new_session  # noqa: PLC0415  only who asks for Spark pays for it

    scratch = tmp_path_factory.mktemp("spark")
    session = new_session(
        "tests",
        "local[2]",
        **{
            "spark.driver.memory": "1g",
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            # Most of the code that runs here runs once: compiling it well would take longer than it gains.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    yield session
    _stop(session)


def _stop(session: "SparkSession") -> None:
    for query in session.streams.active:
        query.stop()
    gateway: Any = session.sparkContext._gateway
    session.stop()
    # The JVM outlives its context, and its sockets would be found by the garbage collector in some later test.
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(timeout=60)
    except subprocess.TimeoutExpired:  # whatever it still waits for, nobody needs it
        gateway.proc.kill()
        gateway.proc.wait()


@pytest.fixture(scope="session")
def kafka() -> Iterator["Cluster"]:
    """One node for the whole session. Topics stay, so each test takes names of its own from `topic`. Records stay as
    well: those of many tests are years old, and a look for what is too old to keep would take them in the midst of a
    test, from changelogs of windows too, which have a retention of their own."""
    from ottla.testing import Cluster  # noqa: PLC0415

    with Cluster(1, log_retention_check_interval_ms=86_400_000) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """host:port of `kafka`, or of the server that OTTLA_TEST_BOOTSTRAP names."""
    other = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    return other or request.getfixturevalue("kafka").bootstrap_servers


@pytest.fixture(scope="module")
def client(bootstrap: str) -> Iterator[Client]:
    with Client(parse_bootstrap(bootstrap)) as client:
        yield client


@pytest.fixture
def world(client: Client, bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(client, bootstrap, f"app-{zlib.crc32(request.node.name.encode()):08x}", tmp_path)
