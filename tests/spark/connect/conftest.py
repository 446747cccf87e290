"""What connectors write into and read from in the tests that kill something: each started once for a module."""

from collections.abc import Iterator

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster as Client
from tests.platform.systems.http_server import commanded_server
from tests.platform.systems.mariadb import mariadb_server
from tests.platform.systems.opensearch import opensearch
from tests.spark.applications import World
from tests.spark.connect.targets import Systems
from tests.support.nodes import Ottla


@pytest.fixture(scope="module")
def us(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ottla]:
    """Where a mirror reads."""
    with Ottla(tmp_path_factory.mktemp("us")) as node:
        yield node


@pytest.fixture
def there(us: Ottla, world: World) -> Iterator[World]:
    with Client(parse_bootstrap(us.bootstrap)) as client:
        yield World(client, us.bootstrap, world.name, world.directory)


@pytest.fixture(scope="module")
def systems() -> Iterator[Systems]:
    # What is committed outlives MariaDB's process, as it does by default.
    with (
        opensearch() as search,
        mariadb_server("--innodb-flush-log-at-trx-commit=2") as maria,
        commanded_server() as web,
    ):
        yield Systems(search, maria, web)
