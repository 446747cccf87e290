"""Config keys parse and complain as Kafka's ConfigDef does."""

import pytest

from ottla.connect.catalogue import catalogue
from ottla.connect.definitions import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    REQUIRED,
    SHORT,
    STRING,
    AtLeast,
    Between,
    ConfigDef,
    ConfigError,
    ConfigKey,
    ConfigValue,
    OneOf,
    OneOfIgnoringCase,
    Password,
    SomeOf,
    Type,
    Validator,
    Value,
    misspelt,
)
from ottla.connect.plugins import Plugin
from ottla.connect.providers import Providers
from ottla.connect.validation import Judge
from ottla.model.properties.property import Required


def parsed(kind: Type, text: str, validator: Validator | None = None) -> Value:
    return ConfigDef(ConfigKey("k", kind, REQUIRED, HIGH, "", validator)).parse({"k": text})["k"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (INT, "+17", 17),
        (SHORT, "-32768", -32768),
        (LONG, "9223372036854775807", (1 << 63) - 1),
        (DOUBLE, "1e3d", 1000.0),
        (LIST, " a , b,c ", ("a", "b", "c")),
        (LIST, "", ()),
        (STRING, " a b ", "a b"),
        (CLASS, "a.B", "a.B"),
        (PASSWORD, "x", Password("x")),
    ],
)
def test_texts_become_values_as_in_java(kind: Type, text: str, value: Value) -> None:
    assert parsed(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "validator", "message"),
    [
        (BOOLEAN, "yes", None, "Invalid value yes for configuration k: Expected value to be either true or false"),
        (INT, "2147483648", None, "Invalid value 2147483648 for configuration k: Not a number of type INT"),
        (INT, "1_0", None, "Invalid value 1_0 for configuration k: Not a number of type INT"),
        (DOUBLE, "x", None, "Invalid value x for configuration k: Not a number of type DOUBLE"),
        (INT, "0", AtLeast(1), "Invalid value 0 for configuration k: Value must be at least 1"),
        (INT, "9", Between(1, 5), "Invalid value 9 for configuration k: Value must be no more than 5"),
        (STRING, "c", OneOf(("a", "b")), "Invalid value c for configuration k: String must be one of: a, b"),
        (
            STRING,
            "c",
            OneOfIgnoringCase(("a",)),
            "Invalid value c for configuration k: String must be one of (case insensitive): A",
        ),
        (LIST, "a,,b", SomeOf(), "Configuration 'k' values must not be empty."),
        (
            LIST,
            "",
            SomeOf(empty_allowed=False),
            "Configuration 'k' must not be empty. Valid values include: any non-empty value",
        ),
    ],
)
def test_what_will_not_do_is_refused_in_kafkas_words(
    kind: Type, text: str, validator: Validator | None, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(kind, text, validator)
    assert str(refused.value) == message


def test_validation_has_a_verdict_for_each_key_and_does_not_stop_at_the_first() -> None:
    keys = ConfigDef(
        ConfigKey("a", STRING, REQUIRED, HIGH, ""),
        ConfigKey("b", INT, 3, MEDIUM, "", AtLeast(1)),
        ConfigKey("c", LIST, ("x",), LOW, "", SomeOf(("x", "y"))),
    )
    missing = 'Missing required configuration "a" which has no default value.'
    assert keys.validate({"b": "x", "c": "x,x"}) == {
        "a": ConfigValue("a", None, (), (missing,)),
        "b": ConfigValue(
            "b",
            None,
            (),
            (
                "Invalid value x for configuration b: Not a number of type INT",
                "Invalid value null for configuration b: Value must be non-null",
            ),
        ),
        "c": ConfigValue("c", ("x", "x"), (), ("Configuration 'c' values must not be duplicated.",)),
    }
    assert keys.parse({"a": "1", "c": "x,x"})["c"] == ("x",)  # KIP-1161


def test_a_password_is_never_printed() -> None:
    assert (str(Password("secret")), "secret" in repr(Password("secret"))) == ("[hidden]", False)


def test_a_misspelt_key_finds_the_one_that_was_meant() -> None:
    assert misspelt(["topic.regex", "topics", "zzz"], ["topics.regex", "topics"]) == {"topic.regex": "topics.regex"}
    assert misspelt(["x" * 1000, *(f"topic.rege{n}" for n in range(500))], ["topics.regex"]).keys() <= {
        f"topic.rege{n}" for n in range(100)
    }


CONNECTORS = [row for row in catalogue().rows if row.kind.is_connector]


@pytest.mark.parametrize("row", CONNECTORS, ids=lambda row: row.class_name)
def test_what_connectors_have_by_default_is_taken_by_those_who_judge_them(row: Plugin) -> None:
    for key in row.load().CONFIG.keys.values():
        if key.validator is not None and not isinstance(key.default, Required):
            key.validator(key.name, key.default)


def test_a_sink_into_a_database_is_taken_by_confluents_names_and_by_debeziums() -> None:
    sink = {"name": "rows", "connector.class": "jdbc-sink", "topics": "rows", "connection.url": "jdbc:sqlite:rows.db"}
    for names in ({"pk.mode": "record_value", "pk.fields": "id"}, {"primary.key.mode": "record_key"}, {}):
        assert Judge({}, Providers({})).judge({**sink, **names}).error_count == 0
    wrong = Judge({}, Providers({})).judge({**sink, "primary.key.mode": "record"})
    assert "Invalid value record for configuration primary.key.mode" in wrong.complaint()
