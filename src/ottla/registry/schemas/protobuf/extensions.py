"""A schema without what extends it: `format=ignore_extensions`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ottla.registry.schemas.protobuf.tree import Enum, Field, File, Group, Message, OneOf, Options

_KEPT: Final = "confluent."


def without_extensions(file: File) -> File:
    """Custom options, extends and ranges for extensions are left out; Confluent's own options stay."""
    return replace(
        file,
        options=_options(file.options),
        messages=tuple(_message(each) for each in file.messages),
        enums=tuple(_enum(each) for each in file.enums),
        extends=(),
        services=tuple(
            replace(
                each,
                options=_options(each.options),
                rpcs=tuple(replace(rpc, options=_options(rpc.options)) for rpc in each.rpcs),
            )
            for each in file.services
        ),
    )


def _options(options: Options) -> Options:
    return tuple(each for each in options if not each.custom or each.name.startswith(_KEPT))


def _message(of: Message) -> Message:
    return replace(
        of,
        options=_options(of.options),
        fields=_fields(of.fields),
        oneofs=tuple(_oneof(each) for each in of.oneofs),
        groups=_groups(of.groups),
        extensions=(),
        extends=(),
        messages=tuple(_message(each) for each in of.messages),
        enums=tuple(_enum(each) for each in of.enums),
    )


def _oneof(of: OneOf) -> OneOf:
    return replace(of, options=_options(of.options), fields=_fields(of.fields), groups=_groups(of.groups))


def _fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(replace(each, options=_options(each.options)) for each in fields)


def _groups(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(replace(each, options=_options(each.options), body=_message(each.body)) for each in groups)


def _enum(of: Enum) -> Enum:
    constants = tuple(replace(each, options=_options(each.options)) for each in of.constants)
    return replace(of, options=_options(of.options), constants=constants)
