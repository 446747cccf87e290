"""ProtobufConverter: which .proto files Connect's schemas become, what messages read as, and both ways round."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ottla.connect.converters.protobuf import ProtobufConverter
from ottla.connect.data.errors import ConnectException, DataException
from ottla.connect.data.logical import DATE, TIME, TIMESTAMP, decimal_schema
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    Schema,
    array_schema,
    map_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type
from ottla.registry.in_memory import MemoryRegistry
from tests.support.connect_values import rows

TAG = "io.confluent.connect.protobuf.Tag"
KIND = "io.confluent.connect.protobuf.Type"
ENUM = "io.confluent.connect.protobuf.Enum"
UNION = "io.confluent.connect.protobuf.Union"


def converter(registry: MemoryRegistry | None = None, **given_: str) -> ProtobufConverter:
    texts = {
        "schema.registry.url": "http://127.0.0.1:1",
        **{key.replace("_", "."): each for key, each in given_.items()},
    }
    return ProtobufConverter(texts, "value", MemoryRegistry() if registry is None else registry)


def tagged(schema: Schema, number: int, **more: str) -> Schema:
    """As it reads by default: it may be null, and its number is kept."""
    return schema.but(optional=True, parameters={**(schema.parameters or {}), TAG: str(number), **more})


def text_of(schema: Schema, value: Any, **given_: str) -> str:
    """Of the file that was registered, behind `syntax`."""
    registry = MemoryRegistry()
    converter(registry, **given_).write("t", SchemaAndValue(schema, value))
    (registered,) = registry.schemas
    return registered.text.partition("\n")[2].strip()


def read_of(text: str, payload: bytes, **given_: str) -> SchemaAndValue:
    """What bytes of the first message of a file read as."""
    registry = MemoryRegistry()
    found = registry.register("t-value", "PROTOBUF", f'syntax = "proto3";\n{text}')
    return converter(registry, **given_).read("t", b"\0" + found.id.to_bytes(4, "big") + b"\0" + payload)


META = (
    "[(confluent.field_meta) = {{\n    params: [\n      {{\n"
    '        key: "{}",\n        value: "{}"\n      }}\n    ]\n  }}]'
)
FIELDS = [
    (INT8, 1, f"int32 f = 1 {META.format('connect.type', 'int8')};", INT8),
    (INT16, 1, f"int32 f = 1 {META.format('connect.type', 'int16')};", INT16),
    (INT32, -1, "int32 f = 1;", INT32),
    (INT64, 1 << 40, "int64 f = 1;", INT64),
    (FLOAT32, 1.5, "float f = 1;", FLOAT32),
    (FLOAT64, 1.1, "double f = 1;", FLOAT64),
    (BOOLEAN, True, "bool f = 1;", BOOLEAN),
    (STRING, "é", "string f = 1;", STRING),
    (BYTES, b"\xff", "bytes f = 1;", BYTES),
    (decimal_schema(2), Decimal("-1.23"), f"confluent.type.Decimal f = 1 {META.format('scale', '2')};", None),
    (DATE, Instant(-86_400_000), "google.type.Date f = 1;", DATE),
    (TIME, Instant(3_723_004), "google.type.TimeOfDay f = 1;", TIME),
    (TIMESTAMP, Instant(-1), "google.protobuf.Timestamp f = 1;", TIMESTAMP),
    (array_schema(INT32), [1, 2], "repeated int32 f = 1;", array_schema(OPTIONAL_INT32)),
    (
        map_schema(STRING, INT32),
        {"a": 0},
        "map<string, int32> f = 1;",
        map_schema(tagged(STRING, 1), tagged(INT32, 2), name="f"),
    ),
    (
        Schema(Type.INT64, parameters={KIND: "uint32"}),
        7,
        "uint32 f = 1;",
        Schema(Type.INT64, parameters={KIND: "uint32"}),
    ),
    (Schema(Type.INT64, parameters={KIND: "fixed64"}), -1, "fixed64 f = 1;", None),
    (Schema(Type.INT32, parameters={TAG: "9"}), 7, "int32 f = 9;", Schema(Type.INT32, parameters={TAG: "9"})),
]


@pytest.mark.parametrize(("schema", "value", "field", "back"), FIELDS)
def test_a_field_is_the_field_that_confluents_converter_makes_of_it_and_comes_back(
    schema: Schema, value: Any, field: str, back: Schema | None
) -> None:
    row = struct_schema([("f", schema)], name="shop.Order")
    ours = converter()
    data = ours.write("t", SchemaAndValue(row, Struct(row, {"f": value})))
    assert f"  {field}\n" in text_of(row, Struct(row, {"f": value}))
    found = ours.read("t", data)
    number = int((schema.parameters or {}).get(TAG, "1"))
    assert found.schema == struct_schema([("f", tagged(back or schema, number))], name="Order")
    assert found.value["f"] == value


def test_structs_are_messages_inside_the_one_that_has_them() -> None:
    item = struct_schema([("name", STRING)], name="shop.Item")
    row = struct_schema([("first", item), ("others", array_schema(item)), ("item", struct_schema([("a", INT32)]))])
    one = Struct(item, {"name": "x"})
    value = Struct(row, {"first": one, "others": [one], "item": Struct(row.fields[2].schema, {"a": 1})})
    assert text_of(row, value) == (
        "message ConnectDefault1 {\n"
        "  Item first = 1;\n  repeated Item others = 2;\n  ConnectDefault2 item = 3;\n\n"
        "  message Item {\n    string name = 1;\n  }\n"
        "  message ConnectDefault2 {\n    int32 a = 1;\n  }\n"
        "}"
    )


def test_a_message_is_not_called_as_a_field_beside_it() -> None:
    item = struct_schema([("name", STRING)], name="item")
    row = struct_schema([("item", item)], name="Row")
    assert "itemMessage item = 1;" in text_of(row, Struct(row, {"item": Struct(item, {"name": "x"})}))


UNIONS = (
    "message Pay { oneof how { string card = 2; int64 cash = 3; } int32 id = 1;"
    " enum Kind { NO = 0; YES = 1; } Kind kind = 4; }"
)


def test_oneofs_and_enums_read_as_confluents_converter_reads_them_and_are_written_again() -> None:
    paid = b"\x08\x07\x18\x05\x20\x01"
    found = read_of(UNIONS, paid)
    kinds = {ENUM: "Kind", f"{ENUM}.NO": "0", f"{ENUM}.YES": "1"}
    how = struct_schema([("card", tagged(STRING, 2)), ("cash", tagged(INT64, 3))], name=f"{UNION}.how", optional=True)
    assert found.schema == struct_schema(
        [
            ("how_0", how),
            ("id", tagged(INT32, 1)),
            ("kind", tagged(Schema(Type.STRING, name="Kind", parameters=kinds), 4)),
        ],
        name="Pay",
    )
    assert found.value["how_0"] == Struct(how, {"cash": 5})
    assert (found.value["id"], found.value["kind"]) == (7, "YES")
    written = converter().write("t", found)
    assert written is not None and written[6:] == paid


@pytest.mark.parametrize(
    ("setting", "field", "expected"),
    [
        ({"flatten.unions": "true"}, "cash", 5),
        ({"flatten.unions": "true"}, "card", None),
        ({"generate.index.for.unions": "false"}, "how", "Struct{cash=5}"),
        ({"int.for.enums": "true"}, "kind", 1),
        ({"generalized.sum.type.support": "true"}, "kind", "YES"),
    ],
)
def test_settings_say_how_oneofs_and_enums_read(setting: dict[str, str], field: str, expected: Any) -> None:
    found = read_of(UNIONS, b"\x08\x07\x18\x05\x20\x01", **setting).value[field]
    assert (str(found) if isinstance(found, Struct) else found) == expected


def test_an_enums_number_that_has_no_name_is_told() -> None:
    assert read_of(UNIONS, b"\x20\x09").value["kind"] == "UNKNOWN_ENUM_VALUE_Kind_9"


ABSENT = "message Row { int32 a = 1; optional int32 b = 2; Row2 c = 3; message Row2 { string d = 1; } }"


def test_what_is_not_set_is_null_where_protobuf_can_tell_and_else_zero() -> None:
    assert read_of(ABSENT, b"").value.values == [0, None, None]
    full = read_of(ABSENT, b"", generate_struct_for_nulls="true").value
    assert full["c"]["d"] == ""


@pytest.mark.parametrize(
    ("setting", "declared"),
    [
        ("optional.for.nullables", "optional string b = 2;"),
        ("wrapper.for.nullables", "google.protobuf.StringValue b = 2;"),
    ],
)
def test_nulls_come_back_where_a_setting_says_how(setting: str, declared: str) -> None:
    row = struct_schema([("a", STRING), ("b", OPTIONAL_STRING), ("c", OPTIONAL_STRING)], name="Row")
    value = Struct(row, {"a": "", "b": None, "c": ""})
    ours = converter(None, **{setting: "true"})
    found = ours.read("t", ours.write("t", SchemaAndValue(row, value)))
    assert found.value.values == ["", None, ""]
    assert found.schema is not None
    assert [field.schema.optional for field in found.schema.fields] == [False, True, True]
    assert declared in text_of(row, value, **{setting: "true"})


@pytest.mark.parametrize(
    ("schema", "value"), [(STRING, "x"), (INT16, 3), (BYTES, b"x"), (FLOAT64, 1.5), (BOOLEAN, False)]
)
def test_a_record_that_is_no_struct_is_wrapped(schema: Schema, value: Any) -> None:
    ours = converter()
    found = ours.read("t", ours.write("t", SchemaAndValue(schema, value)))
    assert found == (INT32 if schema == INT16 else schema, value)


def test_a_record_is_the_message_that_it_says_it_is() -> None:
    registry = MemoryRegistry()
    text = 'syntax = "proto3"; package p; message A { int32 a = 1; } message B { message C { string c = 1; } }'
    registry.register("t-value", "PROTOBUF", text)
    found = converter(registry, enhanced_protobuf_schema_support="true").read("t", b"\0\0\0\0\1\4\2\0\x0a\1x")
    assert found.schema is not None
    assert (found.schema.name, found.value["c"]) == ("p.B.C", "x")


def test_in_a_header_the_message_stands_behind_the_guid() -> None:
    registry = MemoryRegistry()
    ours = converter(
        registry, value_schema_id_serializer="io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"
    )
    row = struct_schema([("a", INT32)], name="Row")
    headers: list[tuple[str, bytes | None]] = [("__value_schema_id", b"stale"), ("other", b"x")]
    (data,) = ours.from_connect("t", [SchemaAndValue(row, Struct(row, {"a": 1}))], [headers])
    assert data == b"\x08\x01"
    guid = bytes.fromhex(registry.schemas[0].guid.replace("-", ""))
    assert headers == [("other", b"x"), ("__value_schema_id", b"\1" + guid + b"\0")]
    (found,) = ours.to_connect("t", [data], [headers])
    assert not isinstance(found, ConnectException) and found.value["a"] == 1


REFUSED = [
    (struct_schema([("a b", INT32)]), {"a b": 1}, "scrub.invalid.names"),
    (struct_schema([("a", array_schema(array_schema(INT32)))]), {"a": [[1]]}, "Array cannot be nested"),
    (struct_schema([("a", array_schema(OPTIONAL_INT32))]), {"a": [1, None]}, "null in it"),
    (struct_schema([("a", map_schema(STRING, OPTIONAL_INT32))]), {"a": {"b": None}}, "null in it"),
    (struct_schema([("a", map_schema(None, None))]), {"a": {}}, "nothing is known"),
    (
        struct_schema([("a", struct_schema([], name="X")), ("b", struct_schema([("c", INT32)], name="X"))]),
        {},
        "one name: X",
    ),
]


@pytest.mark.parametrize(("schema", "values", "reason"), REFUSED)
def test_what_protobuf_has_not_is_refused_with_the_reason(schema: Schema, values: dict[str, Any], reason: str) -> None:
    row = Struct(schema)
    for name, value in values.items():
        row.values[row.found(name).index] = value
    with pytest.raises(DataException, match=reason):
        converter().write("t", SchemaAndValue(schema, row))


def test_a_message_that_contains_itself_is_refused() -> None:
    with pytest.raises(DataException, match="contains itself"):
        read_of("message Tree { Tree left = 1; }", b"")


def test_names_are_scrubbed_as_confluents_converter_scrubs_them() -> None:
    row = struct_schema([("a b", INT32), ("1x", INT32), ("_y", INT32), ("é", INT32)], name="my-ns.My Row")
    text = text_of(row, Struct(row, {"a b": 1, "1x": 2, "_y": 3, "é": 4}), scrub_invalid_names="true")
    for name in ("a_b", "x1x", "x_y", "_C3_A9", "My_Row"):
        assert f" {name} " in text


def test_values_without_a_schema_are_described_by_themselves() -> None:
    ours = converter()
    found = ours.read("t", ours.write("t", SchemaAndValue(None, {"a": 1, "b": {"c": ["x"]}})))
    assert str(found.value) == "Struct{a=1,b=Struct{c=[x]}}"


@given(st.binary(max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_bytes_do_worse_than_not_be_read(noise: bytes) -> None:
    registry = MemoryRegistry()
    registry.register("t-value", "PROTOBUF", f'syntax = "proto3"; {UNIONS}')
    for data in (noise, b"\0\0\0\0\1" + noise, b"\0\0\0\0\1\0" + noise):
        converter(registry).to_connect("t", [data])


def plain(value: Any, schema: Schema) -> Any:
    """Without schemas: what is empty and what is null are one, which Protobuf does not tell apart in lists and maps."""
    if value is None:
        return [] if schema.type is Type.ARRAY else {} if schema.type is Type.MAP else None
    if isinstance(value, Struct):
        return [plain(each, field.schema) for each, field in zip(value.values, value.schema.fields, strict=True)]
    if isinstance(value, list):
        assert schema.value_schema is not None
        return [plain(each, schema.value_schema) for each in value]
    if isinstance(value, dict):
        assert schema.value_schema is not None
        return {key: plain(each, schema.value_schema) for key, each in value.items()}
    return Instant(value % 86_400_000) if schema.name == TIME.name else value  # 24:00 is 0:00, as in Java


@given(rows())
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
def test_what_is_written_is_read_or_refused_and_then_stays_as_it_is(row: tuple[Schema, Struct]) -> None:
    ours = converter(optional_for_nullables="true")
    (data,) = ours.from_connect("t", [SchemaAndValue(*row)])
    if isinstance(data, ConnectException):
        assert any(why in str(data) for why in ("nested", "null in it", "year")), data
        return
    found = ours.read("t", data)
    assert plain(found.value, row[0]) == plain(row[1], row[0])
    again = ours.read("u", ours.write("u", found))
    assert again == found
