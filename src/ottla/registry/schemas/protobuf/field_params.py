"""Parameters of fields, `(confluent.field_meta) = { params: [{ key: "scale", value: "2" }] }`: Connect needs them."""

from typing import Final

from ottla.registry.schemas.protobuf.tags import messages
from ottla.registry.schemas.protobuf.tree import Aggregate, Field, File, Option, Value, Values

_META: Final = "confluent.field_meta"
_PARAMS: Final = "params"


def field_params(file: File) -> dict[str, dict[str, str]]:
    """By the full name of the field; those that have none are left out."""
    package = f"{file.package}." if file.package else ""
    found: dict[str, dict[str, str]] = {}
    for path, message in messages(file).items():
        for field in (*message.fields, *(each for oneof in message.oneofs for each in oneof.fields)):
            params = _params(field)
            if params:
                found[f"{package}{path}.{field.name}"] = params
    return found


def _params(field: Field) -> dict[str, str]:
    found: dict[str, str] = {}
    for option in field.options:
        if option.custom and option.parts[0].name.removeprefix(".") == _META:
            for value in _values(option):
                found |= _entries(value)
    return found


def _values(option: Option) -> list[Value]:
    rest = [part.name for part in option.parts[1:]]
    if rest == [_PARAMS]:
        return [option.value]
    if rest or not isinstance(option.value, Aggregate):
        return []
    return [value for key, value in option.value.entries if key == _PARAMS]


def _entries(value: Value) -> dict[str, str]:
    if isinstance(value, Values):
        return {key: text for each in value.items for key, text in _entries(each).items()}
    if not isinstance(value, Aggregate):
        return {}
    entry = {key: each.decode("utf-8", "replace") for key, each in value.entries if isinstance(each, bytes)}
    return {entry["key"]: entry.get("value", "")} if "key" in entry else {}
