"""How a mirror reads its source, over the wire: a backlog answer by answer, and a topic that is made anew."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.client.admin import delete_topics
from ottla.client.blocking.cluster import Cluster as Client
from ottla.connect import spi
from ottla.connect.jobs.source_task import LIMIT, PEEK
from ottla.mirror.config import SourceMirrorConfig
from ottla.mirror.source_connector import MirrorSource
from ottla.testing import Cluster
from tests.support.patience import eventually

PLACE = {"cluster": "us", "partition": 0, "topic": "orders"}


@pytest.fixture(scope="module")
def us() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def source(us: Cluster) -> Iterator[MirrorSource]:
    us.reset()
    us.create_topic("orders", partitions=1)
    config = {
        "source.cluster.alias": "us",
        "source.cluster.bootstrap.servers": us.bootstrap_servers,
        "target.cluster.bootstrap.servers": us.bootstrap_servers,
    }
    with closing(MirrorSource(spi.parse(SourceMirrorConfig, config), "mirror", PLACE)) as made:
        yield made


def read(source: MirrorSource, start: spi.Offset | None, limit: int) -> tuple[list[bytes], spi.Offset | None, bool]:
    found = source.read(start, limit)
    values = found.rows.values.to_pylist() if isinstance(found.rows, spi.Copies) else []
    return values, start if found.end is None else found.end, found.has_more(limit)


def drained(source: MirrorSource, start: spi.Offset | None = None) -> tuple[list[bytes], spi.Offset | None, int]:
    """All that lies behind `start`, where it ends, and in how many reads."""
    values: list[bytes] = []
    reads, more = 0, True
    while more:
        found, start, more = read(source, start, LIMIT)
        values += found
        reads += 1
    return values, start, reads


def filled(us: Cluster, count: int) -> list[bytes]:
    """Of 10 kB each: more than one answer of a broker."""
    values = [b"%06d" % number + bytes(10_000) for number in range(count)]
    us.produce("orders", *values, partition=0)
    return values


def test_a_backlog_is_read_answer_by_answer_and_nothing_is_asked_twice(us: Cluster, source: MirrorSource) -> None:
    values = filled(us, 1_500)
    found, end, reads = drained(source)
    assert found == values
    assert end == {"offset": 1_499}
    assert reads > 2
    assert drained(source, end) == ([], end, 1)
    more = filled(us, 3)
    assert drained(source, end)[0] == more


def test_a_batch_that_is_done_again_begins_where_it_began(us: Cluster, source: MirrorSource) -> None:
    values = filled(us, 1_200)
    first, end, more = read(source, None, LIMIT)
    assert more
    assert read(source, None, LIMIT)[0] == first
    assert [*first, *drained(source, end)[0]] == values
    assert drained(source, {"offset": 99})[0] == values[100:]


def test_a_glance_takes_no_more_than_it_asks_for(us: Cluster, source: MirrorSource) -> None:
    values = filled(us, PEEK + 10)
    assert read(source, None, PEEK) == (values[:PEEK], {"offset": PEEK - 1}, True)


def test_a_topic_that_is_deleted_and_made_again_is_read_from_its_beginning(us: Cluster, source: MirrorSource) -> None:
    us.produce("orders", "a", "b", "c", partition=0)
    found, end, _ = drained(source)
    assert (found, end) == ([b"a", b"b", b"c"], {"offset": 2})
    with closing(Client(parse_bootstrap(us.bootstrap_servers), client_id="test", timeout_s=60)) as client:
        assert delete_topics(client, ["orders"]) == {"orders": None}
    us.create_topic("orders", partitions=1)
    us.produce("orders", "d", partition=0)

    def is_seen() -> bool:
        try:
            return drained(source, end)[0] == [b"d"]
        except spi.TryAgain:  # as long as somebody still speaks of the topic of before
            return False

    eventually(is_seen, "the new topic's record")
