"""Positions that a person sets: what no source would begin at is refused, with what is wrong."""

from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.connectors.datagen import Datagen
from ottla.connect.connectors.file_source import FileStreamSource
from ottla.connect.connectors.files.source import FilesSource
from ottla.connect.connectors.jdbc.source import JdbcSource
from ottla.connect.connectors.postgresql.source import PostgresSource
from ottla.mirror.source_connector import MirrorSource

FILE = {"filename": "/a"}
TABLE = {"protocol": "1", "table": "t"}
MIRRORED = {"cluster": "us", "topic": "t", "partition": 0}


@pytest.mark.parametrize(
    ("source", "partition", "offset"),
    [
        (FileStreamSource, FILE, {"position": 0}),
        (FileStreamSource, FILE, {"position": 9, "inode": 7, "head": 5}),
        (FileStreamSource, FILE, None),
        (Datagen, {"task.id": 0}, {"iteration": 5}),
        (JdbcSource, TABLE, {"incrementing": 7}),
        (JdbcSource, TABLE, {"incrementing": 7, "holes": [[3, 4]]}),
        (JdbcSource, TABLE, {"round": 1, "rows": 5}),
        (JdbcSource, {"query": "query"}, None),
        (PostgresSource, {"server": "shop"}, {"lsn": "16/B374D848"}),
        (FilesSource, {"files": "/d/topics", "topic": "t"}, {"folders": {}, "floor": [-1, ""]}),
        (MirrorSource, MIRRORED, {"offset": 5}),
        (MirrorSource, MIRRORED, None),
    ],
)
def test_a_position_as_the_source_writes_it_is_taken(
    source: type[spi.Source[Any]], partition: Any, offset: Any
) -> None:
    source.check_offset(partition, offset)


@pytest.mark.parametrize(
    ("source", "partition", "offset", "why"),
    [
        (FileStreamSource, {"file": "/a"}, {"position": 1}, "should contain the key 'filename'"),
        (FileStreamSource, {"filename": 5}, {"position": 1}, "expected to be a text"),
        (FileStreamSource, FILE, {"pos": 1}, "either be null or contain the key 'position'"),
        (FileStreamSource, FILE, {"position": "x"}, "expected to be a whole number"),
        (FileStreamSource, FILE, {"position": True}, "expected to be a whole number"),
        (FileStreamSource, FILE, {"position": -1}, "non-negative"),
        (Datagen, {}, None, "should .*contain the key 'task.id'"),
        (JdbcSource, {"protocol": "1"}, None, "should contain the key 'table'"),
        (JdbcSource, TABLE, {"incrementing": "many"}, "is no position in a table"),
        (JdbcSource, TABLE, {"rows": []}, "is no position in a table"),
        (PostgresSource, {"server": "shop"}, {"position": 1}, "says nothing of where to go on"),
        (FilesSource, {"files": "/d", "topic": "t"}, {"folders": 5}, "cannot be understood"),
        (MirrorSource, {"cluster": "us", "topic": "t"}, None, "contain the key 'partition'"),
        (MirrorSource, MIRRORED, {"offset": 1.5}, "expected to be a whole number"),
    ],
)
def test_one_that_means_nothing_to_it_is_refused(
    source: type[spi.Source[Any]], partition: Any, offset: Any, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        source.check_offset(partition, offset)
