"""What is read and how it is written down: texts, descriptors, tags, indexes, other formats."""

from base64 import b64encode
from typing import Any

import pytest
from confluent_kafka.schema_registry.common.protobuf import _proto_to_str, _schema_to_str, _str_to_proto
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2
from google.protobuf import any_pb2, descriptor_pb2, struct_pb2, timestamp_pb2, type_pb2
from google.protobuf.message_factory import GetMessageClass

from ottla.registry.schemas.base import InvalidSchema, Reference, Resolved
from ottla.registry.schemas.protobuf import ProtobufSchema
from tests.rules.registry.protobuf.scene import found, parsed, proto2, proto3, reference

EVERYTHING = """
syntax = "proto2";
package a.b;
import "google/protobuf/descriptor.proto";
import public "google/protobuf/any.proto";
option java_package = "x.y";
option (about) = { text: "it\\'s \\"x\\"" numbers: [1, 0x10] numbers: 3 inner { text: 'y' } };
option optimize_for = CODE_SIZE;
message About { optional string text = 1; repeated int32 numbers = 2; optional About inner = 3; optional Color c = 4; }
extend google.protobuf.FileOptions { optional About about = 50000; }
extend google.protobuf.FieldOptions { repeated string note = 50001; optional double weight = 50002; }
enum Color { option allow_alias = true; RED = 0; ROT = 0; MINUS = -5 [deprecated = true]; reserved 7 to max, 3; }
message M {
  option (my_message) = RED;
  extend google.protobuf.MessageOptions { optional Color my_message = 50003; }
  required int32 a = 1 [default = -0x10, (note) = "one", (note) = "two", (weight) = -inf];
  optional string b = 2 [default = "\\t\\303\\244\\\\", json_name = "bee"];
  optional bytes c = 3 [default = "\\377\\000", ctype = CORD];
  optional float d = 4 [default = 1e-5];
  optional Color e = 5 [default = ROT];
  map<string, M.N> f = 6;
  repeated group G = 7 { optional int32 x = 1; message Deep { optional bool y = 1; } }
  oneof choice { string k = 8; group H = 9 { optional int32 z = 1; } }
  message N { optional .a.b.Color c = 1; extensions 100 to 199; reserved 4, 6 to 8, "old"; }
  extend N { optional M m = 100; }
}
service S { rpc Go (M) returns (stream M.N) { option idempotency_level = IDEMPOTENT; } rpc No (M) returns (M); }
"""


def test_text_to_descriptor_to_text_to_descriptor_is_a_circle() -> None:
    schema = parsed(EVERYTHING)
    again = parsed(schema.formatted("serialized"))
    assert again.descriptor() == schema.descriptor()
    assert parsed(again.text).descriptor() == schema.descriptor()
    assert parsed(schema.text).text == schema.text
    assert parsed(again.formatted("serialized")).text == again.text
    assert schema.normalized().normalized().text == schema.normalized().text
    assert found(again, schema) == found(schema, again) == found(schema.normalized(), schema) == []


def test_custom_options_are_in_the_descriptor() -> None:
    schema = parsed(EVERYTHING)
    pool = schema.pool()
    options = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FileOptions"))
    read: Any = options.FromString(schema.descriptor().options.SerializeToString())
    about = read.Extensions[pool.FindExtensionByName("a.b.about")]
    assert (about.text, list(about.numbers), about.inner.text) == ('it\'s "x"', [1, 16, 3], "y")


EDITION = """
edition = "2023";
package a;
option features.field_presence = IMPLICIT;
message M {
  int32 x = 1 [features.field_presence = EXPLICIT];
  repeated int32 y = 2;
  map<string, M> z = 3;
  reserved foo;
}
"""


def test_an_edition_is_read_written_and_compared() -> None:
    schema = parsed(EDITION)
    assert schema.text.startswith('edition = "2023";\npackage a;\n\noption features.field_presence = IMPLICIT;\n')
    assert "  reserved foo;\n" in schema.text
    assert schema.descriptor().edition == descriptor_pb2.EDITION_2023
    assert parsed(schema.formatted("serialized")).descriptor() == schema.descriptor()
    assert found(schema, schema) == []


@pytest.mark.parametrize("module", [any_pb2, descriptor_pb2, struct_pb2, timestamp_pb2, type_pb2])
def test_descriptors_of_generated_code_are_taken_as_they_are(module: object) -> None:
    """What confluent-kafka's ProtobufSerializer sends: base64 of FileDescriptor.serialized_pb."""
    descriptor = module.DESCRIPTOR  # type: ignore[attr-defined]
    schema = parsed(b64encode(descriptor.serialized_pb).decode())
    assert [each.name for each in schema.descriptor().message_type] == list(descriptor.message_types_by_name)
    assert parsed(schema.text).text == schema.text
    for name, message in descriptor.message_types_by_name.items():
        built = schema.pool().FindMessageTypeByName(f"google.protobuf.{name}")
        wanted = [(field.name, field.number, field.type) for field in message.fields]
        assert [(field.name, field.number, field.type) for field in built.fields] == wanted


def test_the_serializer_of_confluent_kafka_is_understood_both_ways() -> None:
    decimal, meta = (parsed(_schema_to_str(each.DESCRIPTOR)) for each in (decimal_pb2, meta_pb2))
    assert decimal.message_indexes("confluent.type.Decimal") == (0,)
    theirs = _str_to_proto("meta", meta.formatted("serialized"))
    assert [each.name for each in theirs.message_type] == ["Meta", "Rule"]
    assert found(parsed(_proto_to_str(theirs)), meta) == []


# --- names and references ---


def types_of(schema: ProtobufSchema, message: str) -> list[str]:
    fields = schema.pool().FindMessageTypeByName(message).fields
    return [field.message_type.full_name for field in fields if field.message_type is not None]


MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'


def test_types_come_out_of_references_and_of_files_that_everybody_has() -> None:
    schema = parsed(
        'syntax = "proto3"; package shop; import "common.proto"; import "google/protobuf/timestamp.proto";'
        'import "google/type/date.proto"; import "confluent/type/decimal.proto";'
        "message Invoice { Money total = 1; google.protobuf.Timestamp at = 2; google.type.Date on = 3;"
        "  confluent.type.Decimal exact = 4; }",
        reference("common.proto", MONEY),
    )
    assert types_of(schema, "shop.Invoice") == [
        "shop.Money", "google.protobuf.Timestamp", "google.type.Date", "confluent.type.Decimal",
    ]  # fmt: skip


def test_a_reference_may_refer_to_another() -> None:
    common = reference("common.proto", MONEY)
    text = 'syntax = "proto3"; import public "common.proto"; message Price { shop.Money net = 1; }'
    price = parsed(text, common)
    schema = parsed(
        'syntax = "proto3"; import "price.proto"; message Offer { Price price = 1; shop.Money gross = 2; }',
        common,
        reference_to(price),
    )
    assert types_of(schema, "Offer") == ["Price", "shop.Money"]


def reference_to(schema: ProtobufSchema) -> Resolved:
    return Resolved(Reference("price.proto", "price", 1), schema.text)


def test_files_that_import_each_other_come_to_an_end() -> None:
    text = 'syntax = "proto3"; import "{0}.proto"; message {1} {{ int32 x = 1; }}'
    one, two = text.format("two", "One"), text.format("one", "Two")
    schema = parsed(
        'syntax = "proto3"; import "one.proto"; message M { One one = 1; Two two = 2; }',
        Resolved(Reference("one.proto", "one", 1), one),
        Resolved(Reference("two.proto", "two", 1), two),
    )
    assert types_of(schema, "M") == ["One", "Two"]


INVALID = {
    "no such type": 'syntax = "proto3"; message M { Missing m = 1; }',
    "no such type in a map": 'syntax = "proto3"; message M { map<string, Missing> m = 1; }',
    "no such request": 'syntax = "proto3"; message M {} service S { rpc A (Missing) returns (M); }',
    "nothing to extend": 'syntax = "proto2"; extend Missing { optional int32 a = 1; }',
    "a number used twice": 'syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }',
    "a name used twice": 'syntax = "proto3"; message M { int32 a = 1; int32 a = 2; }',
    "a message used twice": 'syntax = "proto3"; message M {} message M {}',
    "number 0": 'syntax = "proto3"; message M { int32 a = 0; }',
    "a number for protobuf itself": 'syntax = "proto3"; message M { int32 a = 19000; }',
    "a number too large": 'syntax = "proto3"; message M { int32 a = 536870912; }',
    "a map with messages as keys": 'syntax = "proto3"; message M { map<M, string> m = 1; }',
    "an enum of proto3 that does not begin with 0": 'syntax = "proto3"; enum E { A = 1; }',
    "a default of another type": 'syntax = "proto2"; message M { optional int32 a = 1 [default = "x"]; }',
    "a default that is no constant": 'message M { enum E { A = 0; } optional E a = 1 [default = B]; }',
    "an option of another type": 'syntax = "proto3"; message M { option deprecated = "yes"; }',
    "required in proto3": 'syntax = "proto3"; message M { required int32 a = 1; }',
    "no label in proto2": 'syntax = "proto2"; message M { int32 a = 1; }',
    "a label in an edition": 'edition = "2023"; message M { optional int32 a = 1; }',
    "a repeated map": 'syntax = "proto3"; message M { repeated map<string, string> m = 1; }',
    "a label in a oneof": 'syntax = "proto3"; message M { oneof o { repeated int32 a = 1; } }',
    "an unknown syntax": 'syntax = "proto4";',
    "an unknown edition": 'edition = "1999";',
    "syntax not first": 'package a; syntax = "proto3";',
    "an open comment": 'syntax = "proto3"; /* message',
    "an open string": 'syntax = "proto3',
    "an open message": 'syntax = "proto3"; message M {',
    "something else": '{"type": "record"}',
    "a strange character": 'syntax = "proto3"; message M { int32 ä = 1; }',
    "half a surrogate": 'syntax = "proto2"; message M { optional string a = 1 [default = "\\ud800"]; }',
    "base64 of something else": "aGVsbG8gd29ybGQ=",
}  # fmt: skip


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID.keys())
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parsed(text)


def test_a_refusal_says_where() -> None:
    with pytest.raises(InvalidSchema, match=r"Syntax error in :2:11: expected '=' but was '1'"):
        parsed('syntax = "proto3"; message M {\n  int32 a 1;\n}')
    with pytest.raises(InvalidSchema, match=r"Could not resolve type: Money\. .* an import needs a reference"):
        parsed('syntax = "proto3"; import "common.proto"; message M { Money m = 1; }')


def test_what_older_servers_took_is_still_read() -> None:
    twice = parsed('syntax = "proto3"; message M { int32 a = 1; int32 b = 1; Gone c = 2; }', new=False)
    assert found(twice, twice) == []
    assert parsed(twice.formatted("serialized"), new=False).text == twice.text


def test_an_import_of_which_nothing_is_used_may_be_missing() -> None:
    """As with Confluent's server: options alone need nobody who knows them."""
    schema = parsed('syntax = "proto3"; import "buf/validate.proto"; message M { int32 a = 1 [(buf.field).x = 1]; }')
    assert list(schema.descriptor().dependency) == ["buf/validate.proto"]
    assert "(buf.field).x = 1" in schema.text


# --- other formats ---


def test_ignore_extensions_leaves_confluents_options() -> None:
    text = parsed(
        EVERYTHING + "message T { optional int32 a = 1 [(note) = 'x', (confluent.field_meta).tags = 'PII']; }"
    )
    plain = text.formatted("ignore_extensions")
    assert "extend" not in plain and "(note)" not in plain and "(about)" not in plain and "extensions" not in plain
    assert 'optional int32 a = 1 [(confluent.field_meta).tags = "PII"];' in plain


def test_an_unknown_format_is_the_canonical_text() -> None:
    schema = proto3("message M {}")
    assert schema.formatted("resolved") == schema.formatted("") == schema.text


def test_normalised_options_are_gathered_under_their_full_name() -> None:
    schema = parsed(
        'syntax = "proto3"; package p; import "confluent/meta.proto";'
        "message M { int32 a = 1 [(.confluent.field_meta).tags = 'x', deprecated = true, "
        "(confluent.field_meta).tags = 'w', (confluent.field_meta) = { doc: 'about' }]; }"
    )
    assert schema.normalized().text == (
        'syntax = "proto3";\npackage p;\n\nimport "confluent/meta.proto";\n\nmessage M {\n  int32 a = 1 [\n'
        '    (confluent.field_meta) = {\n      doc: "about",\n      tags: [\n        "x",\n        "w"\n      ]\n'
        "    },\n    deprecated = true\n  ];\n}\n"
    )


# --- tags ---

TAGGED = """
syntax = "proto3";
package com.example;
message M {
  string a = 1 [(confluent.field_meta).tags = "PII", (confluent.field_meta).tags = "GDPR"];
  oneof o { string b = 2 [(confluent.field_meta) = { tags: ["PII"], doc: "x" }]; }
  message N { option (confluent.message_meta).tags = "INNER"; string c = 1; }
}
"""


def test_tags_are_found_by_path_without_the_package() -> None:
    assert parsed(TAGGED).tags() == {
        "M.a": frozenset({"PII", "GDPR"}), "M.b": frozenset({"PII"}), "M.N": frozenset({"INNER"}),
    }  # fmt: skip


def test_tags_are_added_as_confluents_server_writes_them() -> None:
    schema = parsed('syntax = "proto3"; package com.example; message Message1 { string f1 = 1; string f2 = 2; }')
    tagged = schema.with_tags({"Message1.f1": frozenset({"TAG1"}), ".Message1.f1": frozenset({"TAG2"})}, {})
    assert tagged.text == (
        'syntax = "proto3";\npackage com.example;\n\nmessage Message1 {\n  string f1 = 1 [(confluent.field_meta) = {\n'
        '    tags: [\n      "TAG1",\n      "TAG2"\n    ]\n  }];\n  string f2 = 2;\n}\n'
    )
    tagged.check()
    assert tagged.with_tags({}, {"Message1.f1": frozenset({"TAG1", "TAG2"})}).text == schema.text


def test_tags_are_taken_away_and_what_stands_beside_them_stays() -> None:
    schema = parsed(TAGGED).with_tags(
        {"M": frozenset({"NEW"})}, {"M.a": frozenset({"PII"}), "M.b": frozenset({"PII"}), "M.N": frozenset({"INNER"})}
    )
    assert schema.tags() == {"M": frozenset({"NEW"}), "M.a": frozenset({"GDPR"})}
    assert 'doc: "x"' in schema.text


# --- indexes ---


def test_indexes_lead_to_a_message_and_back() -> None:
    schema = proto3(
        "package p; message A { map<string, B> m = 1; message X {} message Y { message Z {} } } message B {}"
    )
    for indexes, name in {(0,): "p.A", (1,): "p.B", (0, 0): "p.A.X", (0, 1): "p.A.Y", (0, 1, 0): "p.A.Y.Z"}.items():
        assert (schema.message_name(indexes), schema.message_indexes(name)) == (name, indexes)


def test_indexes_of_a_descriptor_are_those_of_whoever_sent_it() -> None:
    """Generated code counts the types of maps' entries, wherever they stand: a record's indexes must not shift."""
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(struct_pb2.DESCRIPTOR.serialized_pb)
    descriptor.message_type[0].nested_type.add(name="After")
    schema = parsed(b64encode(descriptor.SerializeToString()).decode())
    assert schema.message_indexes("google.protobuf.Struct.FieldsEntry") == (0, 0)
    assert schema.message_indexes("google.protobuf.Struct.After") == (0, 1)


@pytest.mark.parametrize("indexes", [(), (2,), (-1,), (0, 0)])
def test_indexes_that_lead_nowhere(indexes: tuple[int, ...]) -> None:
    with pytest.raises(LookupError):
        proto3("message A {} message B {}").message_name(indexes)


def test_a_message_that_is_not_there_has_no_indexes() -> None:
    with pytest.raises(LookupError):
        proto2("message A {}").message_indexes("B")
