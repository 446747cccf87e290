"""The clients that the conformance tests run with: a test asks for `client` and names what it needs with `needs`."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.base import Client
from tests.support.wire import Wire


def known_clients() -> tuple[Any, ...]:
    # Imported at collection and not before: only then do pytest's filters hold for the clients' own warnings.
    from tests.support.clients.aio import AioKafka  # noqa: PLC0415
    from tests.support.clients.foreign import ApacheJava, FranzGo, KafkaJs  # noqa: PLC0415
    from tests.support.clients.kafka_python import KafkaPython  # noqa: PLC0415
    from tests.support.clients.librdkafka import Librdkafka  # noqa: PLC0415

    return (Librdkafka, KafkaPython, AioKafka, ApacheJava, FranzGo, KafkaJs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*verbs): runs with the clients that have all these verbs")


def marks_of(kind: Any) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.jvm,) if kind.name == "apache-java" else ()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "client" not in metafunc.fixturenames:
        return
    needed = {verb for mark in metafunc.definition.iter_markers("needs") for verb in mark.args}
    able = [kind for kind in known_clients() if not needed & kind.lacks]
    if "codec" not in metafunc.fixturenames:
        cases = [pytest.param(kind, id=kind.name, marks=marks_of(kind)) for kind in able]
        metafunc.parametrize("client", cases, indirect=True, scope="session")
        return
    pairs = [
        pytest.param(kind, codec, id=f"{kind.name}-{codec}", marks=marks_of(kind))
        for kind in able
        for codec in kind.codecs
    ]
    metafunc.parametrize(("client", "codec"), pairs, indirect=["client"], scope="session")


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Client]:
    client: Client = request.param(bootstrap)
    yield client
    client.close()


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    """A connection of the test's own."""
    with Wire(bootstrap) as wire:
        yield wire
