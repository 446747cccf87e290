"""Embedded tags: `(confluent.field_meta)` and `(confluent.message_meta)` of fields and messages, by path.

A path is the names of messages, without the package, and of a field: Order.Item.price.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from ottla.registry.schemas.protobuf.tree import (
    Aggregate,
    Field,
    File,
    Group,
    Message,
    NamePart,
    OneOf,
    Option,
    Options,
    Value,
    Values,
)

_FIELD: Final = "confluent.field_meta"
_MESSAGE: Final = "confluent.message_meta"
_TAGS: Final = "tags"

Tags = Mapping[str, frozenset[str]]


def tags_of(file: File) -> dict[str, frozenset[str]]:
    return {path: frozenset(tags) for path, tags in carriers(file) if tags}


def carriers(file: File) -> Iterator[tuple[str, list[str]]]:
    """The path of each message and field, with its tags."""
    for path, message in messages(file).items():
        yield path, _of(message.options, _MESSAGE)
        yield from _members(message, path)


def messages(file: File) -> dict[str, Message]:
    """By path."""
    found: dict[str, Message] = {}

    def look(message: Message, outer: str) -> None:
        path = f"{outer}{message.name}"
        found[path] = message
        for each in message.messages:
            look(each, f"{path}.")
        for group in message.all_groups():
            look(group.body, f"{path}.")

    for each in file.messages:
        look(each, "")
    return found


def _members(message: Message, path: str) -> list[tuple[str, list[str]]]:
    members = [*message.fields, *(each for oneof in message.oneofs for each in oneof.fields)]
    return [(f"{path}.{each.name}", _of(each.options, _FIELD)) for each in members]


def _of(options: Options, name: str) -> list[str]:
    """In the order in which they are written, each once."""
    found: list[str] = []
    for option in options:
        if not _is_meta(option, name):
            continue
        rest = [part.name for part in option.parts[1:]]
        if rest == [_TAGS]:
            found += _texts(option.value)
        elif not rest and isinstance(option.value, Aggregate):
            found += [text for key, value in option.value.entries if key == _TAGS for text in _texts(value)]
    return list(dict.fromkeys(found))


def _is_meta(option: Option, name: str) -> bool:
    return option.custom and option.parts[0].name.removeprefix(".") == name


def _texts(value: Value) -> list[str]:
    if isinstance(value, bytes):
        return [value.decode("utf-8", "replace")]
    return [text for each in value.items for text in _texts(each)] if isinstance(value, Values) else []


def with_tags(file: File, add: Tags, remove: Tags) -> File:
    """Paths that lead nowhere are passed over."""
    change = _Change(_dotless(add), _dotless(remove))
    return replace(file, messages=tuple(change.message(each, "") for each in file.messages))


def _dotless(tags: Tags) -> dict[str, frozenset[str]]:
    """Confluent's clients may write .Order.price for Order.price."""
    found: dict[str, frozenset[str]] = {}
    for path, names in tags.items():
        key = path.removeprefix(".")
        found[key] = found.get(key, frozenset()) | names
    return found


class _Change:
    __slots__ = ("_add", "_remove")

    def __init__(self, add: Tags, remove: Tags) -> None:
        self._add = add
        self._remove = remove

    def message(self, of: Message, outer: str) -> Message:
        path = f"{outer}{of.name}"
        inner = f"{path}."
        return replace(
            of,
            options=self._options(of.options, path, _MESSAGE),
            fields=tuple(self._field(each, inner) for each in of.fields),
            oneofs=tuple(self._oneof(each, inner) for each in of.oneofs),
            groups=tuple(self._group(each, inner) for each in of.groups),
            messages=tuple(self.message(each, inner) for each in of.messages),
        )

    def _field(self, of: Field, inner: str) -> Field:
        return replace(of, options=self._options(of.options, inner + of.name, _FIELD))

    def _group(self, of: Group, inner: str) -> Group:
        return replace(of, body=self.message(of.body, inner))

    def _oneof(self, of: OneOf, inner: str) -> OneOf:
        fields = tuple(self._field(each, inner) for each in of.fields)
        return replace(of, fields=fields, groups=tuple(self._group(each, inner) for each in of.groups))

    def _options(self, options: Options, path: str, name: str) -> Options:
        add, remove = self._add.get(path, frozenset()), self._remove.get(path, frozenset())
        if not add and not remove:
            return options
        before = _of(options, name)
        after = [tag for tag in before if tag not in remove]
        after += sorted(add - frozenset(after) - (remove - add))
        return options if after == before else _retagged(options, name, after)


def _retagged(options: Options, name: str, tags: list[str]) -> Options:
    """All tags in one place, as Confluent's server writes them: (confluent.field_meta) = { tags: [...] }."""
    entries: list[tuple[str, Value]] = []
    kept: list[Option] = []
    first: int | None = None
    for option in options:
        rest = [part.name for part in option.parts[1:]]
        if not _is_meta(option, name) or rest not in ([], [_TAGS]):
            kept.append(option)
            continue
        first = len(kept) if first is None else first
        if not rest and isinstance(option.value, Aggregate):
            entries += [entry for entry in option.value.entries if entry[0] != _TAGS]
    if tags:
        entries.append((_TAGS, Values(tuple(tag.encode() for tag in tags))))
    if entries:
        at = len(kept) if first is None else first
        kept.insert(at, Option((NamePart(name, custom=True),), Aggregate(tuple(entries))))
    return tuple(kept)
