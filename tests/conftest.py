"""What tests with a server share: one node for the whole session, and names nobody else uses.

`OTTLA_TEST_BOOTSTRAP=host:port` points the same tests at any other server, such as Apache Kafka: what they expect is
Kafka's behaviour, so they must pass there too.
"""

import itertools
import os
import re
import secrets
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.jvm import Tools

# The modules in tests/support are imported by name, and pytest's importlib mode leaves sys.path alone.
sys.path.insert(0, str(Path(__file__).parent.parent))

# Started in the background of a script, or under nohup, these are ignored, and so would be by every node under test.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A minute of work behind the back of whatever is tested.
os.environ.setdefault("OTTLA_PREPARE", "never")

# Whoever keeps a frame finds other bytes in it (`ottla.testing.lent`).
os.environ.setdefault("OTTLA_LENDS_FRAMES", "1")

NewTopicName = Callable[[], str]


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python reads its schemas by a call that Python 3.11 deprecates (and 3.13 kept after all).
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """host:port of the node under test."""
    other = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if other:
        yield other
        return
    from ottla.testing import Cluster  # noqa: PLC0415  not needed when another server is tested

    # Many tests write records of years ago: a look for what is too old to keep would take them in the midst of a test.
    with Cluster(log_retention_check_interval_ms=86_400_000) as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture(scope="session")
def java_tools() -> Iterator["Tools"]:
    """Apache's command line tools. Skips where there is no Java."""
    from tests.support.jvm import Tools  # noqa: PLC0415  sys.path is set up above

    tools = Tools()
    yield tools
    tools.close()


_RUN = secrets.token_hex(3)
_COUNTER = itertools.count()


@pytest.fixture
def new_topic_name(request: pytest.FixtureRequest) -> NewTopicName:
    """Each call gives another name, unused also on a server that earlier runs have filled."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")

    def name() -> str:
        return f"{words[:80]}-{_RUN}-{next(_COUNTER)}"

    return name


@pytest.fixture
def topic(new_topic_name: NewTopicName) -> str:
    """The name of a topic that does not exist yet."""
    return new_topic_name()
