"""The source of files, out of a store that speaks S3."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesSourceConfig
from ottla.connect.connectors.files.sink import FilesSink
from ottla.connect.connectors.files.source import FilesSource
from ottla.connect.connectors.files.stores import store_of
from ottla.testing import connect
from tests.platform.systems.object_store import object_store

LOGIN = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with object_store() as url:
        yield url


@pytest.fixture
def bucket(store: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Keys of a connector whose bucket is empty."""
    boto3 = pytest.importorskip("boto3")
    name = f"b{abs(hash(request.node.name))}"
    boto3.client("s3", endpoint_url=store, region_name="us-east-1", **LOGIN).create_bucket(Bucket=name)
    login = {key.replace("_", "."): value for key, value in LOGIN.items()}
    return {"s3.bucket.name": name, "s3.region": "us-east-1", "store.url": store, **login}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"s3.compression.type": "gzip"},
        {"format.class": "io.confluent.connect.s3.format.avro.AvroFormat"},
        {"format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat"},
    ],
)
def test_values_come_back_from_a_bucket_byte_by_byte(bucket: dict[str, str], more: dict[str, str]) -> None:
    values = [b'{"n":%d,"s":"\xc3\xa4"}' % n for n in range(1_200)]
    config = {**bucket, **more, "flush.size": "500"}
    connect(FilesSink, config, values, topic="orders")
    tried = connect(FilesSource, config)
    assert [(each.topic, each.partition, each.value) for each in tried.records] == [("orders", 0, v) for v in values]
    assert connect(FilesSource, config, start=tried.offset).records == []


def test_new_and_broken_and_vanished_files_of_a_bucket(bucket: dict[str, str]) -> None:
    config = spi.parse(FilesSourceConfig, {**bucket, "mode": "GENERIC", "topic.regex.list": "t:.*", "topics.dir": ""})
    files = store_of(config)
    source = FilesSource(config, "back", {"topic": "t"})

    def values(start: spi.Offset | None) -> tuple[list[Any], spi.Offset | None]:
        read = source.read(start, 100)
        return [row.value for row in read.as_rows()], read.end

    assert values(None) == ([], None)
    files.put("a/1.json", b"1\n2")  # an object is whole once it is there: no end is waited for
    found, place = values(None)
    assert found == [1, 2]
    files.put("a/2.json", b"{\n")
    files.put("b.json", b"3\n")
    found, place = values(place)
    assert found[1:] == [3]
    assert found[0].reason.startswith("a/2.json, record 1: ")
    assert files.get("a/none.json", 10) is None
    assert files.get("b.json", 1) == b"3"
    assert values(place) == ([], None)


def test_a_store_that_is_away_is_tried_again() -> None:
    keys = {"s3.bucket.name": "none", "store.url": "http://127.0.0.1:9", "aws.access.key.id": "x"}
    config = spi.parse(FilesSourceConfig, {**keys, "aws.secret.access.key": "x"})
    with pytest.raises(spi.TryAgain):
        FilesSource(config, "back").partitions()
