"""What a config key of Connect is, and how a connector's texts are parsed and judged by it, in Kafka's own words.

`ConfigDef` is what a plug-in declares as its `CONFIG`. `parse` gives typed values or raises at the first mistake, as a
plug-in that starts wants it; `validate` gives a verdict for each key, as the REST API answers it. Types, defaults and
messages are those of Kafka's ConfigDef, because consoles show them and scripts compare them. The table of the broker
(`model.properties`) has the same types and another duty: it knows no dependents, groups nor recommended values, and
says what is wrong in words of our own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import isnan, nan
from typing import Final, Protocol, TypeAlias

from ottla.model.properties.property import (
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
    Importance,
    Required,
    Type,
    closest,
    java_double,
)
from ottla.model.properties.typed import TypedValues

__all__ = [
    "BOOLEAN",
    "CLASS",
    "DOUBLE",
    "HIGH",
    "INT",
    "LIST",
    "LONG",
    "LOW",
    "MEDIUM",
    "PASSWORD",
    "REQUIRED",
    "SHORT",
    "STRING",
    "AllOf",
    "AtLeast",
    "Between",
    "ConfigDef",
    "ConfigError",
    "ConfigKey",
    "ConfigValue",
    "Importance",
    "NonEmpty",
    "NonEmptyList",
    "NotNull",
    "OneOf",
    "OneOfIgnoringCase",
    "ParsedConfig",
    "Password",
    "Recommender",
    "SomeOf",
    "Type",
    "Validator",
    "Value",
    "Width",
    "render",
]

JAVA_BLANKS = "".join(map(chr, range(33)))
_COMMA = re.compile(r"\s*,\s*")
_BOUNDS = {SHORT: 1 << 15, INT: 1 << 31, LONG: 1 << 63}
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|Infinity|NaN)[dDfF]?")


@dataclass(frozen=True, slots=True)
class Password:
    """A secret: printing it shows that there is one."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        return "[hidden]"


Value: TypeAlias = bool | int | float | str | tuple[str, ...] | Password | None
"""A parsed value. Lists are tuples, classes are names, None is Kafka's null."""

Texts: TypeAlias = Mapping[str, str | None]
"""A configuration as JSON or a properties file gives it."""


class Width(Enum):
    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class ConfigError(ValueError):
    """A configuration that cannot be used; its text is for the person who wrote it."""

    @classmethod
    def of(cls, name: str, value: object, problem: str = "") -> "ConfigError":
        shown = render(value) if not isinstance(value, str) else value
        shown = "null" if shown is None else shown
        return cls(f"Invalid value {shown} for configuration {name}{': ' + problem if problem else ''}")


Validator: TypeAlias = Callable[[str, Value], None]
"""Given name and value. Raises ConfigError when the value will not do; called with None where nothing was parsed."""


class Recommender(Protocol):
    """Says which values a console should offer, and whether the key matters beside the values of the others."""

    def valid_values(self, name: str, parsed: Mapping[str, Value]) -> Sequence[Value]: ...

    def visible(self, name: str, parsed: Mapping[str, Value]) -> bool: ...


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key. Parameters without a default are those that every key of Kafka's has."""

    name: str
    type: Type
    default: Value | Required
    importance: Importance
    documentation: str
    validator: Validator | None = None
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    internal: bool = False

    def __post_init__(self) -> None:
        if not self.display_name:
            object.__setattr__(self, "display_name", self.name)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def default_text(self) -> str | None:
        return None if isinstance(self.default, Required) else render(self.default)

    def convert(self, text: str | None) -> Value:
        """The typed value of a text, not yet judged by the validator. Raises ConfigError."""
        if text is None:
            return None
        trimmed = text.strip(JAVA_BLANKS)
        match self.type:
            case Type.BOOLEAN:
                lowered = trimmed.lower()
                if lowered not in ("true", "false"):
                    raise ConfigError.of(self.name, text, "Expected value to be either true or false")
                return lowered == "true"
            case Type.SHORT | Type.INT | Type.LONG:
                return self._whole(text, trimmed)
            case Type.DOUBLE:
                return self._fraction(text, trimmed)
            case Type.LIST:
                return tuple(_COMMA.split(trimmed)) if trimmed else ()
            case Type.PASSWORD:
                return Password(trimmed)
            case _:
                return trimmed

    def judge(self, value: Value) -> None:
        """Raises ConfigError when the validator does not like the value."""
        if self.validator is not None:
            self.validator(self.name, value)

    def _whole(self, text: str, trimmed: str) -> int:
        digits = trimmed[1:] if trimmed[:1] in ("+", "-") else trimmed
        # Twenty digits hold every long: a longer text is out of range and not worth converting.
        if digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= 20:
            value = int(trimmed)
            if -_BOUNDS[self.type] <= value < _BOUNDS[self.type]:
                return value
        raise ConfigError.of(self.name, text, f"Not a number of type {self.type.name}")

    def _fraction(self, text: str, trimmed: str) -> float:
        if len(trimmed) > 400 or not _FLOAT.fullmatch(trimmed):
            raise ConfigError.of(self.name, text, f"Not a number of type {self.type.name}")
        bare = trimmed.rstrip("dDfF") if not trimmed.endswith("Infinity") else trimmed
        return nan if bare.endswith("NaN") else float(bare)


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """The verdict on one key."""

    name: str
    value: Value = None
    recommended: tuple[Value, ...] = ()
    errors: tuple[str, ...] = ()
    visible: bool = True

    def with_error(self, problem: str) -> "ConfigValue":
        return replace(self, errors=(*self.errors, problem))


class ParsedConfig(TypedValues[Value], Mapping[str, Value]):
    """What `ConfigDef.parse` gives."""

    __slots__ = ()

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__(dict(values))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def find_password(self, name: str) -> str | None:
        """The secret itself."""
        value = self._values[name]
        if value is not None and not isinstance(value, Password):
            raise TypeError(f"{name} is no password")
        return None if value is None else value.value


class ConfigDef:
    """An ordered table of keys, and the groups they are shown in."""

    __slots__ = ("groups", "keys")

    keys: Mapping[str, ConfigKey]
    groups: tuple[str, ...]
    """In the order in which keys named them."""

    def __init__(self, *keys: ConfigKey) -> None:
        self.keys = {key.name: key for key in keys}
        if len(self.keys) != len(keys):
            raise ConfigError("a configuration is defined twice")
        self.groups = tuple(dict.fromkeys(key.group for key in keys if key.group is not None))

    def with_keys(self, keys: Iterable[ConfigKey]) -> "ConfigDef":
        """This table and further keys; one that is there already stands where it stood, in its new meaning."""
        merged = {**self.keys, **{key.name: key for key in keys}}
        return ConfigDef(*merged.values())

    def embedded(self, prefix: str, group_prefix: str, first_order: int) -> list[ConfigKey]:
        """The keys under a prefix, as those of a transform stand in the table of its connector."""
        return [
            replace(
                key,
                name=prefix + key.name,
                group=group_prefix + (f": {key.group}" if key.group is not None else ""),
                order=first_order + place,
                display_name=key.display_name,
                dependents=tuple(prefix + name for name in key.dependents),
                validator=_prefixed_validator(prefix, key.validator),
                recommender=_PrefixedRecommender(prefix, key.recommender) if key.recommender else None,
            )
            for place, key in enumerate(self._sorted())
        ]

    def parse(self, given: Texts) -> ParsedConfig:
        """Every key's value. Raises ConfigError for the first that is missing or wrong."""
        return ParsedConfig({name: self._parse_one(key, given) for name, key in self.keys.items()})

    def validate(self, given: Texts) -> dict[str, ConfigValue]:
        """A verdict for every key; nothing raises."""
        verdicts = {name: ConfigValue(name) for name in self.keys}
        parents: dict[str, None] = {}
        for key in self.keys.values():
            for dependent in key.dependents:
                parents[dependent] = None
                if dependent not in self.keys:
                    problem = f"{dependent} is referred in the dependents, but not defined."
                    verdicts[dependent] = ConfigValue(dependent, errors=(problem,), visible=False)
        parsed: dict[str, Value] = {}
        for name, key in self.keys.items():
            verdicts[name] = self._judge_one(key, given, verdicts[name])
            parsed[name] = verdicts[name].value
        for name, key in self.keys.items():
            if key.recommender is not None:
                verdicts[name] = _recommended(key.recommender, parsed, verdicts[name])
        return verdicts

    def _parse_one(self, key: ConfigKey, given: Texts) -> Value:
        if key.name in given:
            value = key.convert(given[key.name])
        elif isinstance(key.default, Required):
            raise ConfigError(_missing(key))
        else:
            value = key.default
        if isinstance(value, tuple) and isinstance(key.validator, SomeOf):
            value = tuple(dict.fromkeys(value))  # KIP-1161: what is there twice counts once
        key.judge(value)
        return value

    def _judge_one(self, key: ConfigKey, given: Texts, verdict: ConfigValue) -> ConfigValue:
        value: Value = None
        if key.name in given:
            try:
                value = key.convert(given[key.name])
            except ConfigError as error:
                verdict = verdict.with_error(str(error))
        elif isinstance(key.default, Required):
            verdict = verdict.with_error(_missing(key))
        else:
            value = key.default
        try:
            key.judge(value)
        except ConfigError as error:
            verdict = verdict.with_error(str(error))
        return replace(verdict, value=value)

    def _sorted(self) -> list[ConfigKey]:
        """Kafka's order of embedding: by group, place in it, those without default, importance, name."""
        groups = {name: place for place, name in enumerate(self.groups)}
        ranks = {HIGH: 0, MEDIUM: 1, LOW: 2}

        def rank(key: ConfigKey) -> tuple[int, int, bool, int, str]:
            group = -1 if key.group is None else groups[key.group]
            return group, key.order, not key.required, ranks[key.importance], key.name

        return sorted(self.keys.values(), key=rank)


def render(value: object) -> str | None:
    """The text Kafka prints for a value."""
    if value is None:
        return None
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    if isinstance(value, float):
        return java_double(value)
    return str(value)


def _missing(key: ConfigKey) -> str:
    return f'Missing required configuration "{key.name}" which has no default value.'


def _recommended(recommender: Recommender, parsed: Mapping[str, Value], verdict: ConfigValue) -> ConfigValue:
    try:
        values = tuple(recommender.valid_values(verdict.name, parsed))
        return replace(verdict, recommended=values, visible=recommender.visible(verdict.name, parsed))
    except ConfigError as error:
        return verdict.with_error(str(error))


def _prefixed_validator(prefix: str, validator: Validator | None) -> Validator | None:
    """As in Java, a validator is told the name it knows: its complaint says `fields`, not `transforms.x.fields`."""
    if validator is None:
        return None
    return lambda name, value: validator(name.removeprefix(prefix), value)


@dataclass(frozen=True, slots=True)
class _PrefixedRecommender:
    prefix: str
    inner: Recommender

    def valid_values(self, name: str, parsed: Mapping[str, Value]) -> Sequence[Value]:
        return self.inner.valid_values(name.removeprefix(self.prefix), self._own(parsed))

    def visible(self, name: str, parsed: Mapping[str, Value]) -> bool:
        return self.inner.visible(name.removeprefix(self.prefix), self._own(parsed))

    def _own(self, parsed: Mapping[str, Value]) -> dict[str, Value]:
        size = len(self.prefix)
        return {name[size:]: value for name, value in parsed.items() if name.startswith(self.prefix)}


@dataclass(frozen=True, slots=True)
class AtLeast:
    least: float

    def __call__(self, name: str, value: Value) -> None:
        _in_range(name, value, self.least, None)


@dataclass(frozen=True, slots=True)
class Between:
    least: float
    most: float

    def __call__(self, name: str, value: Value) -> None:
        _in_range(name, value, self.least, self.most)


def _in_range(name: str, value: Value, least: float, most: float | None) -> None:
    if value is None:
        raise ConfigError.of(name, None, "Value must be non-null")
    assert isinstance(value, int | float), name
    if value < least or isnan(value):
        raise ConfigError.of(name, value, f"Value must be at least {least}")
    if most is not None and value > most:
        raise ConfigError.of(name, value, f"Value must be no more than {most}")


@dataclass(frozen=True, slots=True)
class OneOf:
    """Kafka's ValidString."""

    words: tuple[str, ...]
    null_allowed: bool = False

    def __call__(self, name: str, value: Value) -> None:
        if value not in self.words and not (value is None and self.null_allowed):
            raise ConfigError.of(name, value, f"String must be one of: {', '.join(self.words)}")


@dataclass(frozen=True, slots=True)
class OneOfIgnoringCase:
    words: tuple[str, ...]

    def __call__(self, name: str, value: Value) -> None:
        upper = tuple(word.upper() for word in self.words)
        if not isinstance(value, str) or value.upper() not in upper:
            raise ConfigError.of(name, value, f"String must be one of (case insensitive): {', '.join(upper)}")


@dataclass(frozen=True, slots=True)
class SomeOf:
    """Kafka's ValidList: without words, any that are not empty nor there twice."""

    words: tuple[str, ...] = ()
    empty_allowed: bool = True
    null_allowed: bool = False

    def __call__(self, name: str, value: Value) -> None:
        if value is None:
            if self.null_allowed:
                return
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        assert isinstance(value, tuple), name
        if not value and not self.empty_allowed:
            include = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {include}")
        if len(dict.fromkeys(value)) != len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        for word in value:
            if not word:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.words:
                OneOf(self.words)(name, word)


@dataclass(frozen=True, slots=True)
class NotNull:
    def __call__(self, name: str, value: Value) -> None:
        if value is None:
            raise ConfigError.of(name, "null", "entry must be non null")


@dataclass(frozen=True, slots=True)
class NonEmpty:
    def __call__(self, name: str, value: Value) -> None:
        if value == "":
            raise ConfigError.of(name, value, "String must be non-empty")


@dataclass(frozen=True, slots=True)
class NonEmptyList:
    """What Connect's transforms ask of `fields` and the like."""

    def __call__(self, name: str, value: Value) -> None:
        if not value:
            raise ConfigError.of(name, "[]", "Empty list")


@dataclass(frozen=True, slots=True)
class AllOf:
    """Kafka's CompositeValidator: the first that objects speaks."""

    validators: tuple[Validator, ...]

    def __call__(self, name: str, value: Value) -> None:
        for validator in self.validators:
            validator(name, value)


MOST_NAMES: Final = 100
LONGEST_NAME: Final = 100


def misspelt(given: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Names that are nearly those of a key, with the one that was probably meant. What is like none may be anybody's:
    Java takes any key, and files of its users have to go on working. Very many, or very long ones, are not looked at:
    comparing takes time."""
    names = sorted(known)
    strange = [name for name in given if name not in names and len(name) <= LONGEST_NAME]
    return {name: near for name in strange[:MOST_NAMES] if (near := closest(name, names)) is not None}
