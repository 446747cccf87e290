"""What is committed beside an offset is Java's TopicPartitionMetadata."""

import pytest

from ottla.streams.tasks.offset_metadata import LONGEST, PartitionTimes, decode, encode, latest

# Of org.apache.kafka.streams.processor.internals.TopicPartitionMetadata 4.3.1.
JAVA = {
    "AgAAAAAAAAAq": PartitionTimes(42),
    "AgAAAAAAAAAqAAAAAQAAAAVzdG9yZQAAAAAAAAAH": PartitionTimes(42, {"store": 7}),
}


@pytest.mark.parametrize("text", JAVA)
def test_it_reads_and_writes_what_java_writes(text: str) -> None:
    assert decode(text) == JAVA[text]
    assert encode(JAVA[text]) == text


def test_it_reads_the_version_before() -> None:
    assert decode("AQAAAAAAAAAq") == PartitionTimes(42)


@pytest.mark.parametrize("text", ["", "what anybody wrote", "AwAAAAAAAAAq", "AgAAAAAAAAAqAAAAAQ=="])
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    assert decode(text) == PartitionTimes()


def test_numbers_that_a_broker_would_refuse_for_their_length_are_left_out() -> None:
    many = {f"ottla:KSTREAM-AGGREGATE-{number:010}#0": number for number in range(200)}
    text = encode(PartitionTimes(5, many))
    assert len(text) <= LONGEST
    assert decode(text) == PartitionTimes(5)


def test_of_two_numbers_of_one_name_the_larger_holds() -> None:
    assert latest([PartitionTimes(1, {"a": 3, "b": 1}), PartitionTimes(2, {"a": 2})]) == {"a": 3, "b": 1}
