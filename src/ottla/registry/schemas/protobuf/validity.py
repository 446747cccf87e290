"""What a new schema must be beyond well written: every name means something, every number may be used, once.

Confluent's server takes a field number that is used twice; no protoc does, so nobody could use such a schema.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.protobuf.names import Imported, Names, within
from ottla.registry.schemas.protobuf.normal import unresolved
from ottla.registry.schemas.protobuf.option_values import Extended, OptionTypes
from ottla.registry.schemas.protobuf.pools import DEFAULT_PATH, pool_of
from ottla.registry.schemas.protobuf.to_descriptor import descriptor_of
from ottla.registry.schemas.protobuf.tree import (
    MAX_FIELD_NUMBER,
    SCALAR_NAMES,
    Enum,
    Extend,
    File,
    Group,
    MapOf,
    Member,
    Message,
)

_FOR_PROTOBUF: Final = range(19_000, 20_000)
_MAP_KEYS: Final = SCALAR_NAMES - {"float", "double", "bytes"}


def check(file: File, imports: Mapping[str, Imported], names: Names, *, custom: bool) -> None:
    """Raises InvalidSchema. `custom`: it may have custom options."""
    scope = file.package or ""
    for message in file.messages:
        _check_message(message, scope, names)
    _check_extends(file.extends, scope, names)
    for service in file.services:
        for rpc in service.rpcs:
            for name in (rpc.request, rpc.response):
                found = names.find(name, scope)
                if found is None or isinstance(found.element, Enum):
                    raise unresolved(name)
    pool = pool_of(file, imports, names, strict=True)
    if custom:
        descriptor_of(file, names, DEFAULT_PATH, OptionTypes(Extended(names, pool), strict=True))


def _check_message(message: Message, outer: str, names: Names) -> None:
    scope = within(outer, message.name)
    for each in _members(message):
        _check_member(each, scope, names)
    for group in message.all_groups():
        _check_message(group.body, scope, names)
    _check_extends(message.extends, scope, names)
    for nested in message.messages:
        _check_message(nested, scope, names)


def _members(message: Message) -> Iterator[Member]:
    yield from message.members()
    for oneof in message.oneofs:
        yield from oneof.members()


def _check_extends(extends: Iterable[Extend], scope: str, names: Names) -> None:
    for extend in extends:
        found = names.find(extend.name, scope)
        if found is None or isinstance(found.element, Enum):
            raise unresolved(extend.name)
        for each in extend.members():
            _check_member(each, scope, names)


def _check_member(member: Member, scope: str, names: Names) -> None:
    number = member.number
    if not 1 <= number <= MAX_FIELD_NUMBER or number in _FOR_PROTOBUF:
        raise InvalidSchema(
            f"the field {within(scope, member.name)} has the number {number}: 1 to {MAX_FIELD_NUMBER} are allowed, "
            f"without {_FOR_PROTOBUF.start} to {_FOR_PROTOBUF.stop - 1}"
        )
    if isinstance(member, Group):
        return
    kind = member.type
    if isinstance(kind, MapOf):
        if kind.key not in _MAP_KEYS:
            raise InvalidSchema(
                f"the map {within(scope, member.name)} has keys of the type {kind.key}: "
                "a key is an integer, bool or string"
            )
        kind = kind.value
    if kind not in SCALAR_NAMES and names.find(kind, scope) is None:
        raise unresolved(kind)
