"""Every rule of Confluent's SchemaDiff: what changes, who can read whom, and in which words it is said."""

from itertools import pairwise

import pytest

from ottla.registry.schemas.base import Budget, TooComplex
from ottla.registry.schemas.protobuf import ProtobufSchema
from ottla.registry.schemas.protobuf.compatibility import Side, changes
from ottla.registry.schemas.protobuf.wording import INCOMPATIBLE
from tests.rules.registry.protobuf.scene import found, message, parsed, proto2, proto3, reference

SCALARS = {
    "numbers": ("int32", "int64", "uint32", "uint64", "bool", "E"),
    "zigzag": ("sint32", "sint64"),
    "fixed32": ("fixed32", "sfixed32"),
    "fixed64": ("fixed64", "sfixed64"),
    "strings": ("string", "bytes"),
    "float": ("float",),
    "double": ("double",),
}

BOTH_OUTSIDE = message("int32 a = 1; int32 b = 2;")
ONE_OUTSIDE = message("oneof o { int32 a = 1; } int32 b = 2;")
BOTH_IN_ONE = message("oneof o { int32 a = 1; int32 b = 2; }")
IN_TWO = message("oneof o { int32 a = 1; } oneof p { int32 b = 2; }")
REQUIRED = proto2("message M { required double a = 1; }")
OPTIONAL = proto2("message M { optional double a = 1; }")

COMPATIBLE = [
    ("MESSAGE_ADDED", proto3("message M {}"), proto3("message M { message N {} }")),
    ("MESSAGE_MOVED", proto3("message A {} message B {}"), proto3("message B {} message A {}")),
    ("ENUM_ADDED", proto3("message M {}"), proto3("message M {} enum E { Z = 0; }")),
    ("ENUM_REMOVED", proto3("message M {} enum E { Z = 0; }"), proto3("message M {}")),
    ("ENUM_CONST_ADDED", proto3("enum E { Z = 0; }"), proto3("enum E { Z = 0; A = 1; }")),
    ("ENUM_CONST_CHANGED", proto3("enum E { Z = 0; A = 1; }"), proto3("enum E { Z = 0; B = 1; }")),
    ("ENUM_CONST_REMOVED", proto3("enum E { Z = 0; A = 1; }"), proto3("enum E { Z = 0; }")),
    ("FIELD_ADDED", message("int32 a = 1;"), message("int32 a = 1; string b = 2;")),
    ("FIELD_REMOVED", message("int32 a = 1; string b = 2;"), message("int32 a = 1;")),
    ("FIELD_NAME_CHANGED", message("int32 a = 1;"), message("int32 b = 1;")),
    ("FIELD_STRING_OR_BYTES_LABEL_CHANGED", message("optional string a = 1;"), message("repeated string a = 1;")),
    ("ONEOF_ADDED", message("int32 a = 1;"), message("oneof o { int32 a = 1; }")),
    ("ONEOF_REMOVED", BOTH_IN_ONE, message("int32 c = 3;")),
    ("ONEOF_FIELD_ADDED", message("oneof o { int32 a = 1; }"), BOTH_IN_ONE),
    ("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", BOTH_IN_ONE, ONE_OUTSIDE),
]  # fmt: skip

INCOMPATIBLE_CHANGES = [
    ("PACKAGE_CHANGED", "#/", proto3("package a; message M {}"), proto3("package b; message M {}")),
    ("PACKAGE_CHANGED", "#/", proto3("message M {}"), proto3("package b; message M {}")),
    ("MESSAGE_REMOVED", "#/N", proto3("message M {} message N {}"), proto3("message M {}")),
    ("MESSAGE_REMOVED", "#/M/N", proto3("message M { message N {} }"), proto3("message M {}")),
    ("FIELD_KIND_CHANGED", "#/M/1", message("int32 a = 1;"), message("N a = 1;")),
    ("FIELD_KIND_CHANGED", "#/M/1", message("N a = 1;"), message("string a = 1;")),
    ("FIELD_KIND_CHANGED", "#/M/1", message("map<string, N> a = 1;"), message("N a = 1;")),
    ("FIELD_KIND_CHANGED", "#/M/1", message("repeated int32 a = 1;"), message("map<int32, int32> a = 1;")),
    ("FIELD_SCALAR_KIND_CHANGED", "#/M/1", message("int32 a = 1;"), message("string a = 1;")),
    ("FIELD_SCALAR_KIND_CHANGED", "#/M/1", message("map<string, int32> a = 1;"), message("map<string, sint32> a = 1;")),
    ("FIELD_SCALAR_KIND_CHANGED", "#/M/1", message("map<string, int32> a = 1;"), message("map<int32, int32> a = 1;")),
    ("FIELD_SCALAR_KIND_CHANGED", "#/M/o/1", message("oneof o { int32 a = 1; }"), message("oneof o { float a = 1; }")),
    ("FIELD_NAMED_TYPE_CHANGED", "#/M/1", message("N a = 1;"), message("O a = 1;")),
    ("FIELD_NAMED_TYPE_CHANGED", "#/M/1", message("map<string, N> a = 1;"), message("map<string, O> a = 1;")),
    ("FIELD_NUMERIC_LABEL_CHANGED", "#/M/1", message("optional int32 a = 1;"), message("repeated int32 a = 1;")),
    ("FIELD_NUMERIC_LABEL_CHANGED", "#/M/1", REQUIRED, OPTIONAL),
    ("REQUIRED_FIELD_ADDED", "#/M/1", proto2("message M {}"), proto2("message M { required string a = 1; }")),
    ("REQUIRED_FIELD_REMOVED", "#/M/1", proto2("message M { required string a = 1; }"), proto2("message M {}")),
    ("ONEOF_FIELD_REMOVED", "#/M/o/2", BOTH_IN_ONE, message("oneof o { int32 a = 1; }")),
    ("ONEOF_FIELD_REMOVED", "#/M/o/2", BOTH_IN_ONE, message("oneof p { int32 a = 1; }")),
    ("ONEOF_FIELD_REMOVED", "#/M/o/2", BOTH_IN_ONE, message("int32 a = 1;")),
    ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o", BOTH_OUTSIDE, BOTH_IN_ONE),
    ("FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/o", ONE_OUTSIDE, BOTH_IN_ONE),
    ("FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/o", IN_TWO, BOTH_IN_ONE),
]  # fmt: skip


def all_changes(reader: ProtobufSchema, writer: ProtobufSchema) -> list[str]:
    return [code for code, _ in changes(side(reader), side(writer), Budget(1_000))]


def side(of: ProtobufSchema) -> Side:
    return Side(of.file, of.names)


@pytest.mark.parametrize(("code", "old", "new"), COMPATIBLE, ids=lambda value: value if isinstance(value, str) else "")
def test_a_change_that_a_new_reader_copes_with(code: str, old: ProtobufSchema, new: ProtobufSchema) -> None:
    assert code in all_changes(new, old)
    assert found(new, old) == []


@pytest.mark.parametrize(
    ("code", "path", "old", "new"), INCOMPATIBLE_CHANGES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_change_that_a_new_reader_does_not_cope_with(
    code: str, path: str, old: ProtobufSchema, new: ProtobufSchema
) -> None:
    assert found(new, old) == [(code, path)]


def test_every_incompatible_change_has_its_case() -> None:
    assert {code for code, *_ in INCOMPATIBLE_CHANGES} == INCOMPATIBLE


BACKWARDS = [
    ("PACKAGE_CHANGED", True), ("MESSAGE_REMOVED", False), ("FIELD_KIND_CHANGED", True),
    ("FIELD_SCALAR_KIND_CHANGED", True), ("FIELD_NAMED_TYPE_CHANGED", True), ("FIELD_NUMERIC_LABEL_CHANGED", True),
    ("REQUIRED_FIELD_ADDED", True), ("REQUIRED_FIELD_REMOVED", True), ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", False),
    ("ONEOF_FIELD_REMOVED", False), ("FIELD_MOVED_TO_EXISTING_ONEOF", False),
]  # fmt: skip
COPED_WITH_ONE_WAY = {
    "MESSAGE_ADDED": "MESSAGE_REMOVED",
    "ONEOF_FIELD_ADDED": "ONEOF_FIELD_REMOVED",
    "ONEOF_FIELD_MOVED_TO_TOP_LEVEL": "FIELD_MOVED_TO_EXISTING_ONEOF",
}
"""Of the changes that a new reader copes with, those with which an old one does not, and what they are to it."""


@pytest.mark.parametrize(("code", "refused"), BACKWARDS)
def test_whether_the_old_reader_copes_with_the_new_writer(code: str, refused: bool) -> None:
    """FORWARD asks the same with the places changed."""
    cases = [(old, new) for each, _, old, new in INCOMPATIBLE_CHANGES if each == code]
    assert [bool(found(old, new)) for old, new in cases] == [refused] * len(cases)


def test_every_incompatible_change_was_asked_about_the_other_way_round() -> None:
    assert {code for code, _ in BACKWARDS} == INCOMPATIBLE


@pytest.mark.parametrize(("code", "old", "new"), COMPATIBLE, ids=lambda value: value if isinstance(value, str) else "")
def test_an_old_reader_copes_with_most_of_what_a_new_one_copes_with(
    code: str, old: ProtobufSchema, new: ProtobufSchema
) -> None:
    refused = [COPED_WITH_ONE_WAY[code]] if code in COPED_WITH_ONE_WAY else []
    assert [each for each, _ in found(old, new)] == refused


@pytest.mark.parametrize("before", [name for names in SCALARS.values() for name in names])
@pytest.mark.parametrize("after", [name for names in SCALARS.values() for name in names])
def test_scalars_change_inside_their_group_only(before: str, after: str) -> None:
    same = any(before in names and after in names for names in SCALARS.values())
    expected = [] if same else [("FIELD_SCALAR_KIND_CHANGED", "#/M/1")]
    assert found(message(f"{after} a = 1;"), message(f"{before} a = 1;")) == expected


def test_a_label_that_was_not_written_may_come_and_go() -> None:
    """Asked of Confluent's server: proto3 `int32` to `repeated int32` passes. Messages may change their label."""
    assert found(message("repeated int32 a = 1;"), message("int32 a = 1;")) == []
    assert found(message("repeated N a = 1;"), message("optional N a = 1;")) == []


def test_one_field_alone_may_become_a_oneof() -> None:
    assert found(message("oneof o { int32 a = 1; int32 c = 3; } int32 b = 2;"), BOTH_OUTSIDE) == []


def test_what_a_field_is_counts_also_where_its_oneof_changed() -> None:
    old = message("oneof o { int32 a = 1; string b = 2; }")
    assert found(message("oneof p { int32 a = 1; int32 b = 2; }"), old) == [("FIELD_SCALAR_KIND_CHANGED", "#/M/p/2")]
    assert found(ONE_OUTSIDE, old) == [("FIELD_SCALAR_KIND_CHANGED", "#/M/2")]


def test_groups_are_compared_as_messages() -> None:
    """Confluent's server does not look into them."""

    def group(members: str) -> ProtobufSchema:
        return proto2(f"message M {{ optional group G = 1 {{ {members} }} }}")

    assert found(group("optional int32 a = 1; optional int32 b = 2;"), group("optional int32 a = 1;")) == []
    assert found(group("optional string a = 1;"), group("optional int32 a = 1;")) == [
        ("FIELD_SCALAR_KIND_CHANGED", "#/M/1/1")
    ]
    assert found(proto2("message M { optional string a = 1; }"), group("")) == [("FIELD_KIND_CHANGED", "#/M/1")]
    assert found(proto2("message M {}"), group("")) == []


def test_a_map_is_one_however_it_is_written() -> None:
    spelled_out = (
        "message M { repeated AEntry a = 1; message AEntry { option map_entry = true; string key = 1; %s value = 2; } }"
    )
    short = proto3("message M { map<string, int32> a = 1; }")
    assert found(proto3(spelled_out % "int64"), short) == found(short, proto3(spelled_out % "int64")) == []
    assert found(proto3(spelled_out % "string"), short) == [("FIELD_SCALAR_KIND_CHANGED", "#/M/1")]


# --- types of other files ---


def using(field: str, *of: tuple[str, int]) -> ProtobufSchema:
    imports = "".join(f'import "f{n}.proto"; ' for n, _ in enumerate(of))
    resolved = [reference(f"f{n}.proto", text, version) for n, (text, version) in enumerate(of)]
    return parsed(f'syntax = "proto3"; package p; {imports} message M {{ {field} }}', *resolved)


def other(members: str) -> str:
    return f'syntax = "proto3"; package q; message T {{ {members} }} message U {{ T t = 1; }}'


def test_a_type_of_another_file_is_compared_in_depth() -> None:
    old = using("q.T a = 1;", (other("int32 x = 1;"), 1))
    assert found(using("q.T a = 1;", (other("int32 x = 1; int32 y = 2;"), 2)), old) == []
    assert found(using("q.T a = 1;", (other("string x = 1;"), 2)), old) == [
        ("FIELD_NAMED_TYPE_CHANGED", "#/M/1"),
        ("FIELD_SCALAR_KIND_CHANGED", "#/T/1"),
    ]


def test_what_is_wrong_spreads_to_whoever_uses_it() -> None:
    old = using("q.U a = 1;", (other("int32 x = 1;"), 1))
    assert found(using("q.U a = 1;", (other("string x = 1;"), 2)), old) == [
        ("FIELD_NAMED_TYPE_CHANGED", "#/M/1"),
        ("FIELD_NAMED_TYPE_CHANGED", "#/U/1"),
        ("FIELD_SCALAR_KIND_CHANGED", "#/T/1"),
    ]


def test_a_type_that_nobody_uses_does_not_matter() -> None:
    old = using("int32 a = 1;", (other("int32 x = 1;"), 1))
    assert found(using("int32 a = 1;", (other("string x = 1;"), 2)), old) == []


def test_a_type_may_move_between_files_if_it_stays_the_same() -> None:
    old = using("q.T a = 1;", (other("int32 x = 1;"), 1))
    own = proto3("package p; message M { T a = 1; } message T { int32 x = 1; }")
    assert found(own, old) == []
    assert found(proto3("package p; message M { T a = 1; } message T { string x = 1; }"), old) == [
        ("FIELD_NAMED_TYPE_CHANGED", "#/M/1"),
        ("FIELD_SCALAR_KIND_CHANGED", "#/T/1"),
    ]


def test_messages_that_contain_themselves_come_to_an_end() -> None:
    text = 'syntax = "proto3"; package q; message T {{ T t = 1; U u = 2; {} x = 3; }} message U {{ T t = 1; }}'
    old, new = using("q.T a = 1;", (text.format("int32"), 1)), using("q.T a = 1;", (text.format("string"), 2))
    assert found(new, using("q.T a = 1;", (text.format("int64"), 3))) == found(new, old)
    assert ("FIELD_SCALAR_KIND_CHANGED", "#/T/3") in found(new, old)
    assert found(old, using("q.T a = 1;", (text.format("int32"), 3))) == []


def test_a_chain_of_types_is_as_long_as_the_budget() -> None:
    chain = " ".join(f"message T{n} {{ T{n + 1} t = 1; }}" for n in range(2_000)) + " message T2000 { %s x = 1; }"
    text = f'syntax = "proto3"; package q; {chain}'
    old, new = using("q.T0 a = 1;", (text % "int32", 1)), using("q.T0 a = 1;", (text % "string", 2))
    assert found(new, old)[0] == ("FIELD_NAMED_TYPE_CHANGED", "#/M/1")
    with pytest.raises(TooComplex):
        new.reading(old, "STRICT", Budget(1_000))


# --- sequences ---


def test_each_step_may_be_fine_and_the_whole_way_not() -> None:
    """What the transitive levels are for: a number is freed, and then used for something else."""
    versions = [BOTH_OUTSIDE, message("int32 a = 1;"), message("int32 a = 1; string b = 2;")]
    assert [found(new, old) for old, new in pairwise(versions)] == [[], []]
    assert found(versions[2], versions[0]) == [("FIELD_SCALAR_KIND_CHANGED", "#/M/2")]
    assert [found(old, new) for old, new in pairwise(versions)] == [[], []]
    assert found(versions[0], versions[2]) == [("FIELD_SCALAR_KIND_CHANGED", "#/M/2")]


def test_a_sequence_in_which_everybody_reads_everybody() -> None:
    versions = [
        message("int32 a = 1;"),
        message("int64 a = 1; string b = 2;"),
        message("E a = 1; bytes b = 2; N c = 3;"),
    ]
    assert [found(one, another) for one in versions for another in versions] == [[]] * 9


def test_confluents_words_come_first_and_ours_after_them() -> None:
    (difference,) = message("string a = 1;").reading(message("int32 a = 1;"), "STRICT", Budget(1_000))
    assert difference.text % ("new", "old") == (
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path \'#/M/1\' in the new '
        'schema does not match its kind in the old schema"}'
    )
    assert "string and bytes" in difference.hint
