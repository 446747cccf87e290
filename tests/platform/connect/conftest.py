"""One server of each kind for all tests of this folder; each test has a database with nothing in it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.platform.connect.databases import KINDS, emptied, server


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, str]]:
    """Started when they are first asked for."""
    with ExitStack() as stack:

        class Started(dict[str, str]):
            def __missing__(self, kind: str) -> str:
                self[kind] = stack.enter_context(server(kind))
                return self[kind]

        yield Started()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(kind: str, servers: dict[str, str], tmp_path: Path) -> str:
    return emptied(kind, servers[kind], tmp_path)


@pytest.fixture
def postgres(servers: dict[str, str], tmp_path: Path) -> str:
    return emptied("postgresql", servers["postgresql"], tmp_path)


@pytest.fixture
def maria(servers: dict[str, str], tmp_path: Path) -> str:
    return emptied("mariadb", servers["mariadb"], tmp_path)


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    """What a test left open would hold its locks."""
    made: list[Any] = []
    yield made
    for each in made:
        each.close()
