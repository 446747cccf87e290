"""Who can read what whom wrote. Java Avro is asked the same in tests/oracle; here are the rules, words and hints."""

import json
from typing import Any

import pytest

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Difference, TooComplex
from tests.rules.registry.avro.schemas import avro, field, record, referring
from tests.support.patience import least_cpu_s


def reading(reader: Any, writer: Any) -> tuple[Difference, ...]:
    return avro(reader).reading(avro(writer), "STRICT", Budget(DEFAULT_STEPS))


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": symbols, **more}


COMPATIBLE: list[tuple[Any, Any]] = [
    ("long", "int"),
    ("float", "long"),
    ("double", "float"),
    ("string", "bytes"),
    ("bytes", "string"),
    (["null", "string"], "string"),
    ("string", ["string"]),
    (["int", "string"], ["string", "int"]),
    ({"type": "int", "logicalType": "date"}, "int"),
    (record("R"), record("R", field("f", "int"))),
    (record("R", field("f", "int", default=1)), record("R")),
    (record("R", field("g", "int", aliases=["f"])), record("R", field("f", "int"))),
    (record("a.R"), record("b.R")),
    (record("n.S", aliases=["R"]), record("n.R")),
    (record("n.S", aliases=["m.R"]), record("m.R")),
    (enum("P", "Q"), enum("P")),
    (enum("P", default="P"), enum("P", "Q")),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    (record("R", field("next", ["null", "R"])), record("R", field("next", ["null", "R"]))),
]


@pytest.mark.parametrize(("reader", "writer"), COMPATIBLE)
def test_a_reader_reads_what_can_be_turned_into_its_types(reader: Any, writer: Any) -> None:
    assert reading(reader, writer) == ()


INCOMPATIBLE: list[tuple[Any, Any, Difference]] = [
    (
        record("R", field("f", "int")),
        record("R"),
        Difference(
            "READER_FIELD_MISSING_DEFAULT_VALUE",
            "/fields/0",
            "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'f' at path '/fields/0' in the %s"
            " schema has no default value and is missing in the %s schema', additionalInfo:'f'}",
            'field f of record R has to be filled where data lacks it: give it one, such as "default": 0, or make it'
            ' optional: a union with "null" first and "default": null; if it is an old field under a new name, give it'
            " the old one as an alias",
        ),
    ),
    (
        record("R", field("f", "int")),
        record("R", field("f", "string")),
        Difference(
            "TYPE_MISMATCH",
            "/fields/0/type",
            "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field in the %s schema does"
            " not match with the %s schema', additionalInfo:'reader type: INT not compatible with"
            " writer type: STRING'}",
            'string is read by itself, bytes, or by a union with such a branch: ["string", "int"]',
        ),
    ),
    (
        "int",
        ["null", "int"],
        Difference(
            "TYPE_MISMATCH",
            "/0",
            "{errorType:'TYPE_MISMATCH', description:'The type (path '/0') of a field in the %s schema does not match"
            " with the %s schema', additionalInfo:'reader type: INT not compatible with writer type: NULL'}",
            'data may hold null: make the type a union with it, ["null", "int"]',
        ),
    ),
    (
        record("n.S"),
        record("n.R"),
        Difference(
            "NAME_MISMATCH",
            "/name",
            "{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')',"
            " additionalInfo:'expected: n.R'}",
            'record n.S reads n.R if it is called so, or has it as an alias: "aliases": ["n.R"]',
        ),
    ),
    (
        enum("P"),
        enum("Z", "P", "Q"),
        Difference(
            "MISSING_ENUM_SYMBOLS",
            "/symbols",
            "{errorType:'MISSING_ENUM_SYMBOLS', description:'The %s schema is missing enum symbols '[Q, Z]' at path"
            " '/symbols' in the %s schema', additionalInfo:'[Q, Z]'}",
            "keep Q, Z in enum E, or give the enum a default (beside its symbols, not of a field) that stands for"
            " symbols it does not know",
        ),
    ),
    (
        {"type": "fixed", "name": "F", "size": 2},
        {"type": "fixed", "name": "F", "size": 3},
        Difference(
            "FIXED_SIZE_MISMATCH",
            "/size",
            "{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path '/size' in the %s"
            " schema does not match with the %s schema', additionalInfo:'expected: 3, found: 2'}",
            'fixed F has 2 bytes and reads only as many; data of 3 bytes needs "size": 3, or a new field with default',
        ),
    ),
    (
        ["null", "int"],
        ["null", "string"],
        Difference(
            "MISSING_UNION_BRANCH",
            "/1",
            "{errorType:'MISSING_UNION_BRANCH', description:'The %s schema is missing a type inside a union field at"
            " path '/1' in the %s schema', additionalInfo:'reader union lacking writer type: STRING'}",
            'no branch of ["null", "int"] reads string as it was written: keep such a branch in the union',
        ),
    ),
]


@pytest.mark.parametrize(("reader", "writer", "difference"), INCOMPATIBLE, ids=lambda each: getattr(each, "code", ""))
def test_a_refusal_says_what_in_confluents_words_and_what_would_do_in_ours(
    reader: Any, writer: Any, difference: Difference
) -> None:
    assert reading(reader, writer) == (difference,)


def test_an_alias_that_fits_two_fields_fits_none() -> None:
    (found,) = reading(record("R", field("f", "int", aliases=["g"])), record("R", field("f", "int"), field("g", "int")))
    assert found.text.startswith(
        "Unexpected exception during compatibility check: Reader record field f type:INT pos:0"
    )
    assert found.hint == "field f goes by f and g, and data has both: take all but one out of its aliases"


def test_an_enum_with_a_default_is_no_field_with_a_default() -> None:
    (found,) = reading(record("R", field("f", enum("P", default="P"))), record("R"))
    assert (found.code, found.path) == ("TYPE_MISMATCH", "/fields/0/type")
    assert 'such as "default": "P"' in found.hint


def test_types_of_references_are_compared_in_depth() -> None:
    cents, euros = (record("Money", field("amount", kind)) for kind in ("long", "string"))
    order = record("Order", field("price", "Money"))
    reader, writer = avro(order, referring("Money", cents)), avro(order, referring("Money", euros))
    (found,) = reader.reading(writer, "STRICT", Budget(DEFAULT_STEPS))
    assert (found.code, found.path) == ("TYPE_MISMATCH", "/fields/0/type/fields/0/type")


def test_rings_of_types_come_to_an_end_whatever_their_lengths() -> None:
    def ring(length: int, last: str) -> Any:
        """Of records R that refer to each other; in different namespaces, for their names are compared without."""
        kinds = [
            record(f"n{n}.R", field("next", ["null", f"n{(n + 1) % length}.R"]), field("x", last if n == 0 else "int"))
            for n in range(length)
        ]
        return record("Top", field("f", {"type": "array", "items": kinds}))

    assert reading(ring(40, "int"), ring(39, "int")) == ()
    assert reading(ring(40, "int"), ring(39, "string")) != ()


def test_a_fault_to_which_very_many_ways_lead_is_told_once() -> None:
    """Forty levels of records that hold two of the next: 2 to the power of 40 times the same field."""

    def doubled(leaf: str) -> Any:
        inner: Any = record("R0", field("x", leaf))
        for level in range(1, 41):
            inner = record(f"R{level}", field("a", inner), field("b", f"R{level - 1}"))
        return inner

    found = reading(doubled("int"), doubled("string"))
    assert {each.path for each in found} == {"/fields/0/type" * 41}
    assert len(found) < 200


def test_unions_that_multiply_are_given_up() -> None:
    kinds = [{"type": "array", "items": "int"}, *(record(f"R{n}", field("x", "int")) for n in range(1000))]
    schema = avro(json.dumps(kinds))
    with pytest.raises(TooComplex):
        schema.reading(avro(json.dumps(kinds[::-1])), "STRICT", Budget(DEFAULT_STEPS))


def test_a_thousand_fields_are_compared_in_a_fifth_of_a_second() -> None:
    fields = [
        field(f"f{n}", ["null", record(f"Q{n}", field("x", "int"), field("y", enum("P", name=f"E{n}")))])
        for n in range(1000)
    ]
    one, other = avro(json.dumps(record("R", *fields))), avro(json.dumps(record("R", *reversed(fields))))
    assert one.reading(other, "STRICT", Budget(DEFAULT_STEPS)) == ()
    assert least_cpu_s(lambda: one.reading(other, "STRICT", Budget(DEFAULT_STEPS))) < 0.2
