"""Whatever somebody sends: a schema, InvalidSchema or TooComplex, and within the budget."""

from base64 import b64encode
from contextlib import suppress
from sys import getrefcount

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema, TooComplex
from ottla.registry.schemas.protobuf import Protobuf, ProtobufSchema
from ottla.registry.schemas.protobuf.known import known, known_descriptor
from tests.rules.registry.protobuf.scene import found, parsed
from tests.rules.registry.protobuf.test_text import EVERYTHING
from tests.support.examples import examples

WORDS = [
    "syntax", "=", '"proto2"', '"proto3"', ";", "message", "M", "{", "}", "enum", "E", "oneof", "o", "int32", "string",
    "a", "b", "1", "2", "0", "-1", "repeated", "optional", "required", "group", "G", "map", "<", ">", ",", "[", "]",
    "default",
    "option", "(", ")", ".", "reserved", "to", "max", "extensions", "extend", "service", "rpc", "returns", "stream",
    "import", '"x.proto"', "package", "true", '"\\x"', "'\\377'", "//", "/*", "*/", "\n", "json_name", "1e9", ":",
    "features.field_presence", "edition", '"2023"', "deprecated", "map_entry", "allow_alias", "google.protobuf.Any",
]  # fmt: skip


def asked(text: str) -> ProtobufSchema | None:
    """All that can be asked of a schema, if it is one."""
    try:
        schema = Protobuf().parse(text, [], Budget(DEFAULT_STEPS), new=False)
    except (InvalidSchema, TooComplex):
        return None
    assert parsed(schema.text, new=False).text == schema.text
    assert found(schema, schema) == []
    again = parsed(schema.formatted("serialized"), new=False)
    assert again.formatted("serialized") == schema.formatted("serialized")
    schema.with_tags({path: frozenset({"x"}) for path in ("M", "M.a")}, schema.tags())
    schema.formatted("ignore_extensions")
    for ask in (schema.check, schema.normalized, schema.pool):
        with suppress(InvalidSchema):
            ask()
    return schema


@settings(max_examples=examples(60))
@given(st.text(max_size=60))
def test_any_text_is_a_schema_or_refused(text: str) -> None:
    asked(text)


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
def test_any_words_of_the_language_are_a_schema_or_refused(text: str) -> None:
    asked(text)


@settings(max_examples=examples(150))
@given(st.integers(0, len(EVERYTHING)), st.integers(0, 12), st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join))
def test_a_schema_with_something_changed_is_one_or_refused(at: int, gone: int, instead: str) -> None:
    asked(EVERYTHING[:at] + instead + EVERYTHING[at + gone :])


@settings(max_examples=examples(150))
@given(st.binary(max_size=200))
def test_any_bytes_are_a_descriptor_or_refused(data: bytes) -> None:
    asked(b64encode(data).decode())


@settings(max_examples=examples(150))
@given(st.data())
def test_a_descriptor_with_bytes_changed_is_one_or_refused(data: st.DataObject) -> None:
    serialized = bytearray(parsed(EVERYTHING).descriptor().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        serialized[data.draw(st.integers(0, len(serialized) - 1))] = data.draw(st.integers(0, 255))
    asked(b64encode(bytes(serialized)).decode())


# --- schemas that are made up, and always good ---

NAMES = st.sampled_from(["a", "b", "c_d", "Enum", "message", "stream", "x1", "_y"])
STRINGS = st.binary(max_size=6).map(lambda raw: "".join(f"\\{byte:03o}" for byte in raw))


@st.composite
def messages(draw: st.DrawFn, name: str = "M", depth: int = 2) -> str:
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    lines = []
    for number, field in enumerate(names, 1):
        kind = draw(st.sampled_from(["int32", "string", "bytes", "bool", "double", "M", "map<string, M>"]))
        label = "" if kind.startswith("map") else draw(st.sampled_from(["", "optional ", "repeated "]))
        custom = f' [json_name = "j{number}", (confluent.field_meta).doc = "x"]'
        option = draw(st.sampled_from(["", " [deprecated = true]", custom]))
        lines.append(f"{label}{kind} {field} = {number}{option};")
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), "oneof pick { float p = 20; bytes q = 21; }")
    if depth and draw(st.booleans()):
        lines.append(draw(messages("Inner", depth - 1)))
    return f"message {name} {{ {' '.join(lines)} reserved 100 to 110, 200; }}"


@settings(max_examples=examples(60))
@given(messages(), STRINGS)
def test_a_good_schema_stays_what_it_is(body: str, text: str) -> None:
    schema = asked(f'syntax = "proto3"; import "confluent/meta.proto"; {body}')
    assert schema is not None
    schema.check()
    assert found(schema.normalized(), schema) == found(schema, schema.normalized()) == []
    assert schema.normalized().normalized().text == schema.normalized().text
    again = parsed(schema.formatted("serialized"))
    assert again.descriptor() == schema.descriptor()


@given(STRINGS)
def test_bytes_keep_their_value_whatever_they_are(text: str) -> None:
    schema = parsed(f'message M {{ optional bytes b = 1 [default = "{text}"]; }}')
    default = schema.pool().FindMessageTypeByName("M").fields[0].default_value
    assert default == bytes(int(each, 8) for each in text.split("\\")[1:])
    assert parsed(schema.text).text == schema.text


# --- bombs ---


@pytest.mark.parametrize("n", [40, 20_000])
def test_levels_without_end_are_refused(n: int) -> None:
    for text in (
        'syntax = "proto3"; ' + "message M { " * n + "}" * n,
        'syntax = "proto3"; option (a) = ' + "{ a: " * n + "1" + "}" * n + ";",
        'syntax = "proto3"; option (a) = ' + "[" * n + "]" * n + ";",
        "message M { " + "optional group G = 1 { " * n + "}" * n + "}",
    ):
        with pytest.raises(InvalidSchema, match="nested deeper"):
            parsed(text)


def test_a_deep_descriptor_is_refused() -> None:
    descriptor = FileDescriptorProto(name="deep")
    message = descriptor.message_type.add(name="M")
    for _ in range(90):
        message = message.nested_type.add(name="M")
    with pytest.raises(InvalidSchema, match="nested deeper"):
        parsed(b64encode(descriptor.SerializeToString()).decode())


def test_a_long_text_takes_more_steps_than_there_are() -> None:
    with pytest.raises(TooComplex):
        parsed("// x" * 10_000_000)


def test_many_tokens_take_more_steps_than_there_are() -> None:
    with pytest.raises(TooComplex):
        parsed('syntax = "proto3";' + ";" * 1_000_000)


@pytest.mark.parametrize("text", ["// nothing", ";", b64encode(b"\x0a\x07default").decode()])
def test_a_file_that_declares_nothing_is_refused(text: str) -> None:
    """Its text would be empty."""
    with pytest.raises(InvalidSchema, match="nothing"):
        parsed(text)


def test_a_name_in_a_descriptor_is_not_code() -> None:
    descriptor = FileDescriptorProto(name="x", syntax="proto3")
    descriptor.message_type.add(name="M").field.add(
        name="a = 1; int32 b", number=2, type=FieldDescriptorProto.TYPE_INT32, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    schema = parsed(b64encode(descriptor.SerializeToString()).decode())
    assert [field.name for field in schema.file.messages[0].fields] == ["a", "b"], "what is stored is what is checked"


def test_every_scalar_may_have_strange_defaults() -> None:
    for default in ("1" * 500, "1e999", "-inf", "nan", "0x" + "f" * 40, "00000", "1.", ".5"):
        for kind in ("int32", "double", "uint64"):
            asked(f"message M {{ optional {kind} a = 1 [default = {default}]; }}")


def test_what_strangers_import_is_not_remembered() -> None:
    """It may be as long as a body."""
    path = f"{'nobody' * 10}.proto"
    before = getrefcount(path)
    assert known(path) is None
    assert known_descriptor(path) is None
    assert getrefcount(path) == before
