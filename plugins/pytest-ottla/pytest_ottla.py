"""The `kafka` fixture: one node for the whole session, empty at the start of every test.

Registered as a pytest plugin by the package itself, so an environment with ottla in it is all a test suite needs.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
