"""One JVM for all cases."""

from collections.abc import Iterator

import pytest

from tests.oracle.kafka import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Apache Kafka Streams. Skips where there is no Java."""
    found = Oracle()
    yield found
    found.close()
