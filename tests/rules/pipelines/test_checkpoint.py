"""What the sink reads out of Spark's checkpoint."""

from pathlib import Path

import pytest

from ottla.model.ids import TopicPartition
from ottla.pipelines.checkpoint import offsets_of_batch, query_id_of

SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def checkpoint(directory: Path, *sources: str) -> str:
    (directory / "offsets").mkdir()
    (directory / "offsets" / "3").write_text("\n".join(["v1", SETTINGS, *sources]))
    return str(directory)


def test_the_end_of_a_batch_is_where_its_kafka_sources_end(tmp_path: Path) -> None:
    where = checkpoint(tmp_path, '{"in":{"0":17,"1":4}}', '{"logOffset":3}', '{"other-in":{"0":0}}')
    assert offsets_of_batch(where, 3) == {
        TopicPartition("in", 0): 17,
        TopicPartition("in", 1): 4,
        TopicPartition("other-in", 0): 0,
    }


def test_a_partition_with_two_readers_counts_with_the_one_behind(tmp_path: Path) -> None:
    assert offsets_of_batch(checkpoint(tmp_path, '{"in":{"0":17}}', '{"in":{"0":9}}'), 3) == {
        TopicPartition("in", 0): 9
    }


def test_sources_of_other_kinds_have_no_offsets(tmp_path: Path) -> None:
    assert offsets_of_batch(checkpoint(tmp_path, "-", "17", "[1]", '{"a":{"b":1}}', "words", '{"x":1}'), 3) == {}


def test_the_id_is_that_of_the_query(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"5b8b8d1c-4f52-4a8e-9c5f-0f6f3f7a9f50"}')
    assert query_id_of(str(tmp_path)) == query_id_of(f"file://{tmp_path}") == "5b8b8d1c-4f52-4a8e-9c5f-0f6f3f7a9f50"


def test_a_directory_that_is_no_checkpoint_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="checkpointLocation"):
        query_id_of(str(tmp_path))
