"""What callers send. Values of configs may be written as numbers or booleans, as Java's server takes them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from ottla.connect.definitions import render
from ottla.http.problems import Problem

Scalar: TypeAlias = str | int | float | bool | None
ConfigBody: TypeAlias = dict[str, Scalar]


class CreateBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str | None = None
    config: ConfigBody | None = None
    initial_state: str | None = None


class OffsetBody(msgspec.Struct, forbid_unknown_fields=True):
    partition: dict[str, Any] | None = None
    offset: dict[str, Any] | None = None


class OffsetsBody(msgspec.Struct, forbid_unknown_fields=True):
    offsets: list[OffsetBody] | None = None


def texts(config: Mapping[str, Scalar]) -> dict[str, str | None]:
    return {name: render(value) for name, value in config.items()}


def named(name: str, config: Mapping[str, Scalar]) -> dict[str, str | None]:
    """With its name in it, as it is written down. Raises Problem where another one is there."""
    found = texts(config)
    included = found.get("name")
    if included is not None and included != name:
        raise Problem(
            400, f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        )
    return found if included is not None else {**found, "name": name}
