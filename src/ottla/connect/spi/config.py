"""A connector's config as a model: `connection.url` in the JSON is the field `connection_url`.

Values come as strings, as Connect's do, or as JSON has them; lists are split at commas. The same model tells which keys
there are, of which type and what for, so that validation, `GET .../config` and the documentation need nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import inspect

from ottla.connect.definitions import (
    BOOLEAN,
    DOUBLE,
    HIGH,
    LIST,
    LONG,
    MEDIUM,
    PASSWORD,
    REQUIRED,
    STRING,
    AtLeast,
    Between,
    ConfigDef,
    ConfigKey,
    OneOf,
    Password,
    Type,
    Validator,
    Value,
)

SECRET: Final = "secret"
Secret = Annotated[str, msgspec.Meta(extra={SECRET: True})]
"""The type of a field that is never shown."""

EVERYTHING: Final = "everything"
Everything = Annotated[dict[str, str], msgspec.Meta(extra={EVERYTHING: True})]
"""The type of a field that is given the whole configuration, for keys whose names are not fixed: no key of its own."""

MOST_CHARACTERS: Final = 1 << 20
"""Of one value."""


def _dotted(field: str) -> str:
    return field.replace("_", ".")


class Foreign(NamedTuple):
    """A key of somebody else's connector for the same thing, by which other data would be written, and which this one
    does not have: to take it in silence would publish what nobody wanted."""

    name: str
    """`column.mask.*`: all that begin so."""
    reason: str
    """And what may be done instead."""
    harmless: tuple[str, ...] = ()
    """Values with which it asks for nothing that is not done anyway."""

    def refuses(self, name: str, value: str) -> bool:
        if not value or value.lower() in (each.lower() for each in self.harmless):
            return False
        return name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name


class Config(msgspec.Struct, kw_only=True, rename=_dotted):
    """Base of all models. Fields without a default are required; `Annotated[int, msgspec.Meta(ge=1, description=...)]`
    has bounds and a text; a key with an underscore of its own is `field(name="my_key")`."""

    REFUSED: ClassVar[tuple[Foreign, ...]] = ()


C = TypeVar("C", bound=Config)


class ConfigRefused(ValueError):
    """The text names the key, and says what is expected."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        super().__init__(f"{key}: {reason}" if key else reason)


_TYPES: Final[Mapping[str, Type]] = {
    "STRING": STRING, "INT": LONG, "DOUBLE": DOUBLE, "BOOLEAN": BOOLEAN, "LIST": LIST, "PASSWORD": PASSWORD,
}  # fmt: skip


def model_of(plugin: type) -> type[Config] | None:
    """What stands in the brackets of its base class."""
    for base in getattr(plugin, "__orig_bases__", ()):
        for argument in get_args(base):
            if isinstance(argument, type) and issubclass(argument, Config):
                return argument
    return None


def definition_of(model: type[Config]) -> ConfigDef:
    """The model in Connect's words."""
    return ConfigDef(*(_definition(key) for key in keys_of(model)))


def _definition(key: Key) -> ConfigKey:
    return ConfigKey(
        key.name,
        _TYPES[key.kind],
        REQUIRED if key.required else _default(key),
        HIGH if key.required else MEDIUM,
        key.doc,
        OneOf(key.choices, null_allowed=key.default is None) if key.choices else _bounds(key),
    )


def _default(key: Key) -> Value:
    if key.default is None:
        return None
    if key.kind == "PASSWORD":
        return Password(str(key.default))
    if key.kind == "LIST":
        return tuple(str(each) for each in key.default)
    default: Value = key.default
    return default


def _bounds(key: Key) -> Validator | None:
    least, most = key.bounds
    if least is None and most is None:
        return None
    if most is None:
        return AtLeast(least or 0)
    return Between(float("-inf") if least is None else least, most)


Kind = Literal["STRING", "INT", "DOUBLE", "BOOLEAN", "LIST", "PASSWORD"]


class Key(NamedTuple):
    """One key of a connector."""

    name: str
    kind: Kind
    required: bool
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    bounds: tuple[float | None, float | None] = (None, None)


def keys_of(model: type[Config]) -> tuple[Key, ...]:
    """In the order of the model."""
    described = inspect.type_info(model)
    assert isinstance(described, inspect.StructType)
    return tuple(_key(field) for field in described.fields if not _is_everything(field.type))


def takes_everything(model: type[Config]) -> bool:
    """Whether there are keys without fixed names."""
    return bool(_everything_of(model))


def refused_keys(model: type[Config], given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Keys of others that would change what is written, with the reason."""
    texts = {name: str(value).strip() for name, value in given.items() if value is not None}
    return [
        (name, foreign.reason)
        for name, value in texts.items()
        for foreign in model.REFUSED
        if foreign.refuses(name, value)
    ]


def _everything_of(model: type[Config]) -> list[str]:
    described = inspect.type_info(model)
    assert isinstance(described, inspect.StructType)
    return [field.encode_name for field in described.fields if _is_everything(field.type)]


def _is_everything(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.Metadata) and bool((kind.extra or {}).get(EVERYTHING))


def parse(model: type[C], given: Mapping[str, Any]) -> C:
    """Keys that the model does not have are left alone: the framework's are among them. Raises ConfigRefused."""
    for name, reason in refused_keys(model, given):
        raise ConfigRefused(name, reason)
    values: dict[str, Any] = {}
    for key in keys_of(model):
        value = given.get(key.name)
        if value is None:
            if key.required:
                raise ConfigRefused(key.name, f"is missing: {key.doc}" if key.doc else "is missing")
            continue
        values[key.name] = _loose(key, value)
    for name in _everything_of(model):
        values[name] = {key: str(value) for key, value in given.items() if value is not None}
    try:
        return msgspec.convert(values, model, strict=False)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$.")
        name = at.removesuffix("`").partition("[")[0]
        raise ConfigRefused(name, reason[:1].lower() + reason[1:]) from error


def _loose(key: Key, value: Any) -> Any:
    if not isinstance(value, str):
        return str(value) if key.kind in ("STRING", "PASSWORD") and isinstance(value, int | float) else value
    if len(value) > MOST_CHARACTERS:
        raise ConfigRefused(key.name, f"is longer than {MOST_CHARACTERS:,} characters")
    if key.kind == "LIST":
        return [part.strip() for part in value.split(",") if part.strip()]
    if key.kind in ("INT", "DOUBLE", "BOOLEAN"):
        return value.strip().lower()
    return value


def _key(field: inspect.Field) -> Key:
    kind, description, choices = _described(field.type)
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    return Key(
        field.encode_name,
        kind,
        field.required,
        None if default is msgspec.NODEFAULT else default,
        description,
        choices,
        _bounds_of(field.type),
    )


def _bounds_of(kind: inspect.Type) -> tuple[float | None, float | None]:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return (kind.ge, kind.le) if isinstance(kind, inspect.IntType | inspect.FloatType) else (None, None)


def _described(kind: inspect.Type) -> tuple[Kind, str, tuple[str, ...]]:
    description = ""
    secret = False
    while isinstance(kind, inspect.Metadata):
        description = description or str((kind.extra_json_schema or {}).get("description", ""))
        secret = secret or bool((kind.extra or {}).get(SECRET))
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        kinds = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        inner, text, choices = _described(kinds[0])
        return ("PASSWORD" if secret else inner), description or text, choices
    if isinstance(kind, inspect.LiteralType):
        return "STRING", description, tuple(str(each) for each in kind.values)
    return ("PASSWORD" if secret else _kind(kind)), description, ()


def _kind(kind: inspect.Type) -> Kind:
    if isinstance(kind, inspect.BoolType):
        return "BOOLEAN"
    if isinstance(kind, inspect.IntType):
        return "INT"
    if isinstance(kind, inspect.FloatType):
        return "DOUBLE"
    if isinstance(kind, inspect.ListType | inspect.VarTupleType | inspect.SetType | inspect.FrozenSetType):
        return "LIST"
    return "STRING"
