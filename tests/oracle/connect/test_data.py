"""Transforms, predicates and converters answer as Kafka's own classes do: the same bytes, the same errors."""

from base64 import b64encode
from typing import Any

import pytest

from tests.oracle.connect.debezium_cases import debezium_cases, debezium_differs
from tests.oracle.connect.kafka import ConnectOracle
from tests.oracle.connect.ours import alike, answer
from tests.oracle.connect.random_chains import random_cases
from tests.oracle.connect.tables import converter_cases, transform_cases

pytestmark = pytest.mark.jvm

SCHEMALESS = {"schemas.enable": "false"}
TOO_LONG = b64encode(b"99999999999999999999").decode()
WRONG_DEFAULT = b64encode(b'{"schema":{"type":"int64","default":"x"},"payload":1}').decode()


def _differs_on_purpose(case: dict[str, Any]) -> bool:
    """Where Java loses something without a word: a number of more than 64 bits is cut, a text reads as 0. And where
    Debezium's transforms fail with no reason to see."""
    if debezium_differs(case):
        return True
    if not case.get("read", "").endswith("JsonConverter"):
        return False
    if case["config"] == SCHEMALESS:
        return bool(case["data"] == TOO_LONG)
    return case["data"] == WRONG_DEFAULT and "schema.content" not in case["config"]


@pytest.fixture(scope="module")
def answers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    cases = [*transform_cases(), *converter_cases(), *random_cases(), *debezium_cases()]
    return list(zip(cases, ConnectOracle().ask(cases), strict=True))


def test_every_case_gives_javas_bytes_or_javas_error(
    answers: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    assert len(answers) > 4500
    different = [
        (case, java, ours)
        for case, java in answers
        if not _differs_on_purpose(case) and not alike(java, ours := answer(case))
    ]
    assert different[:3] == []


def test_nothing_is_lost_where_java_loses_it(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    chosen = [case for case, _ in answers if _differs_on_purpose(case) and case.get("config") in ({}, SCHEMALESS)]
    found = {case["data"]: answer(case) for case in chosen}
    assert found[TOO_LONG]["value"] == '{"schema":null,"payload":99999999999999999999}'
    assert found[WRONG_DEFAULT]["error"] == "org.apache.kafka.connect.errors.DataException"


def test_what_a_transform_says_of_a_record_is_what_java_says(
    answers: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    """Word for word but where Java prints an address, a cause of its own or nothing of use."""
    said = [
        (java["message"], answer(case)["message"])
        for case, java in answers
        if "chain" in case
        and not debezium_differs(case)
        and java.get("error", "").startswith("org.apache.kafka.connect.errors.")
    ]
    assert len(said) > 300
    records = "Timestamp missing on record: "  # Java shows the record with its addresses behind this
    assert [pair for pair in said if pair[0] != pair[1] and not pair[1].startswith(records)][:3] == []
