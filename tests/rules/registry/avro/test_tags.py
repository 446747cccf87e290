"""Tags inside of schemas."""

import pytest

from ottla.registry.schemas.base import InvalidSchema
from tests.rules.registry.avro.schemas import avro, field, record

PII = frozenset(["PII"])
SCHEMA = avro(
    record(
        "n.R",
        field("a", "int", **{"confluent:tags": ["PII", "KEY"]}),
        field("b", ["null", record("Q", field("x", "int"), **{"confluent:tags": ["INNER"]})]),
        field("c", ["null", "R"]),
    )
)


def test_tags_are_known_by_the_path_of_what_carries_them() -> None:
    assert SCHEMA.tags() == {"n.R.a": frozenset(["PII", "KEY"]), "n.Q": frozenset(["INNER"])}


def test_records_are_told_from_fields() -> None:
    assert SCHEMA.records() == {"n.R", "n.Q"}


def test_tags_are_added_and_removed_and_nothing_else_changes() -> None:
    added = {"n.R": PII, "Q.x": PII, "n.R.a": frozenset(["NEW"])}
    changed = SCHEMA.with_tags(added, {"n.R.a": PII, "n.Q": frozenset(["INNER"])})
    assert changed.tags() == {"n.R": PII, "n.R.a": frozenset(["KEY", "NEW"]), "n.Q.x": PII}
    back = changed.with_tags({}, changed.tags())
    assert back.text == SCHEMA.with_tags({}, SCHEMA.tags()).text
    assert "confluent:tags" not in back.text
    assert SCHEMA.tags()["n.R.a"] == frozenset(["PII", "KEY"])


def test_a_path_to_nowhere_is_refused() -> None:
    with pytest.raises(InvalidSchema, match=r"No matching path 'n\.R\.nope' found in the schema"):
        SCHEMA.with_tags({"n.R.nope": PII}, {})
