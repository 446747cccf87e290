"""The file connectors' keys are those of Kafka 4.3.1's, as `GET /connector-plugins/…/config` tells them."""

from typing import Any

import pytest

from ottla.connect import spi
from ottla.connect.api.replies import definition
from ottla.connect.connectors.file_sink import FileStreamSink
from ottla.connect.connectors.file_source import FileSourceConfig, FileStreamSource
from ottla.connect.definitions import ConfigDef

TOLD = ("name", "type", "required", "default_value", "importance", "width", "order_in_group", "dependents")


def told(config: ConfigDef) -> list[tuple[Any, ...]]:
    return [tuple(definition(key)[name] for name in TOLD) for key in config.keys.values()]


def test_keys_of_the_source() -> None:
    assert told(FileStreamSource.CONFIG) == [
        ("file", "STRING", False, None, "HIGH", "NONE", -1, []),
        ("topic", "STRING", True, None, "HIGH", "NONE", -1, []),
        ("batch.size", "INT", False, "2000", "LOW", "NONE", -1, []),
    ]


def test_keys_of_the_sink() -> None:
    assert told(FileStreamSink.CONFIG) == [("file", "STRING", False, None, "HIGH", "NONE", -1, [])]


def test_an_empty_topic_is_refused_in_javas_words() -> None:
    found = {each.name: each.errors for each in FileStreamSource.CONFIG.validate({"topic": ""}).values()}
    assert found["topic"] == ("Invalid value  for configuration topic: String must be non-empty",)


def test_standard_input_is_not_read() -> None:
    with pytest.raises(spi.ConfigRefused, match=r"file: is missing: a worker has no standard input"):
        FileStreamSource(spi.parse(FileSourceConfig, {"topic": "t"}), "c").validate()
