"""The fixtures of ottla: `kafka`, one node, and `kafka_cluster`, three; `kafka_secured`, one whose users log in over
TLS; `schema_registry` and `connect`, beside `kafka`. Each is started once for the whole session, and empty and healthy
at the start of every test.

A distribution of its own: pytest rewrites the asserts of every module that comes with a plugin, and all of ottla would
take longer to rewrite than a node to start.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ottla.testing import Cluster


@pytest.fixture(scope="session")
def ottla_cluster() -> Iterator["Cluster"]:
    """The node behind `kafka`. Override this fixture to give it settings of your own."""
    from ottla.testing import Cluster  # noqa: PLC0415  a suite that does not use Kafka pays nothing

    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def kafka(ottla_cluster: "Cluster") -> Iterator["Cluster"]:
    """A running Kafka with no topics in it: `kafka.bootstrap_servers` is what any client wants."""
    yield ottla_cluster
    ottla_cluster.reset()


@pytest.fixture
def schema_registry(kafka: "Cluster") -> str:
    """The URL of a schema registry with no schemas in it, beside `kafka`."""
    return kafka.schema_registry_url


@pytest.fixture
def connect(kafka: "Cluster") -> str:
    """The URL of a Connect worker with no connectors in it, beside `kafka`; Spark comes with the first one."""
    return kafka.connect_url


@pytest.fixture(scope="session")
def ottla_secured() -> Iterator["Cluster"]:
    """The node behind `kafka_secured`. Override this fixture to give it settings of your own."""
    from ottla.testing import Cluster  # noqa: PLC0415

    with Cluster(security="SASL_SSL") as cluster:
        yield cluster


@pytest.fixture
def kafka_secured(ottla_secured: "Cluster") -> Iterator["Cluster"]:
    """A running Kafka for users who log in over TLS and may do what ACLs allow: `kafka_secured.user("alice",
    may=["produce orders"])` makes one, and returns what a client has to be told; `kafka_secured.admin` may everything.
    Rights are taken away after the test."""
    yield ottla_secured
    ottla_secured.reset()


@pytest.fixture(scope="session")
def ottla_three_nodes() -> Iterator["Cluster"]:
    """The nodes behind `kafka_cluster`. Override this fixture to give them settings of your own."""
    from ottla.testing import Cluster  # noqa: PLC0415

    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def kafka_cluster(ottla_three_nodes: "Cluster") -> Iterator["Cluster"]:
    """Three nodes that replicate, and can be killed, paused and cut off from each other; mended after the test."""
    yield ottla_three_nodes
    ottla_three_nodes.reset()


@pytest.fixture
def sql() -> "Callable[..., tuple[list[dict[str, Any]], list[dict[str, Any]]]]":
    """`ottla.sql.testing.run`: statements over records, without broker and Spark. Gives (outputs, sources)."""
    from ottla.sql.testing import run  # noqa: PLC0415

    return run
