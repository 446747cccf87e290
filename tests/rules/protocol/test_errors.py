"""Kafka's error table as the rest of the house relies on it."""

from ottla.model.errors import Errors


def test_codes_run_from_minus_one_to_133_without_a_gap() -> None:
    assert [error.code for error in Errors] == list(range(-1, 134))


def test_an_error_is_its_code() -> None:
    assert Errors.UNKNOWN_TOPIC_OR_PARTITION.code == int(Errors.UNKNOWN_TOPIC_OR_PARTITION) == 3
    assert Errors(45) is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not Errors.NONE


def test_clients_retry_what_kafka_calls_retriable() -> None:
    assert Errors.NOT_LEADER_OR_FOLLOWER.retriable
    assert Errors.UNKNOWN_TOPIC_ID.retriable
    assert not Errors.REBALANCE_IN_PROGRESS.retriable
    assert sum(error.retriable for error in Errors) == 32


def test_every_error_has_a_sentence_for_people() -> None:
    assert len({error.text for error in Errors}) == len(Errors)
    assert all(error.text.endswith(".") and len(error.text) < 90 for error in Errors)
