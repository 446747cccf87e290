"""Whether a reader understands what a writer wrote, by the rules of Confluent's server.

Messages are matched by name, fields by number over the whole message, members of oneofs included. Types that come out
of another file are compared in depth where a field uses them: each pair once, one after the other, so that neither
messages which contain themselves nor long chains of types lead astray; what is wrong with one then spreads to whoever
uses it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ottla.registry.schemas.base import Budget, Difference
from ottla.registry.schemas.protobuf.names import Names, Type, within
from ottla.registry.schemas.protobuf.tree import SCALAR_NAMES, Enum, File, Group, MapOf, Member, Message
from ottla.registry.schemas.protobuf.wording import INCOMPATIBLE, hint_of, text_of

K = TypeVar("K")

_SCALAR_GROUPS: Final = (
    ("int32", "int64", "uint32", "uint64", "bool"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
)
_GROUP_OF: Final = {name: n for n, group in enumerate(_SCALAR_GROUPS) for name in group}
_NUMBERS: Final = _GROUP_OF["int32"]
"""Where enums belong, too."""
_STRINGS: Final = _GROUP_OF["string"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two schemas."""

    file: File
    names: Names


def differences(reader: Side, writer: Side, budget: Budget) -> tuple[Difference, ...]:
    return tuple(
        Difference(code, path, text_of(code, path), hint_of(code))
        for code, path in changes(reader, writer, budget)
        if code in INCOMPATIBLE
    )


def changes(reader: Side, writer: Side, budget: Budget) -> tuple[tuple[str, str], ...]:
    """All that changed, with those changes that do no harm: Confluent's word and path for each."""
    comparison = _Comparison(writer.names, reader.names, budget)
    comparison.files(writer.file, reader.file)
    return tuple(comparison.settled())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where both are: as it is shown, and as names are looked up from there."""

    path: tuple[str, ...]
    old_scope: str
    new_scope: str

    def named(self, name: str) -> "_Place":
        return _Place((*self.path, name), within(self.old_scope, name), within(self.new_scope, name))

    def at(self, *path: str) -> "_Place":
        return _Place((*self.path, *path), self.old_scope, self.new_scope)


@dataclass(frozen=True, slots=True)
class _Member:
    """A field or a group of a message, by its number."""

    field: Member
    oneof: str | None


@dataclass(slots=True)
class _Members:
    by_number: dict[int, _Member]
    oneofs: dict[str, list[int]]


_Pair = tuple[str, str]
"""The full names of a type in the old and in the new schema."""
_FILES: Final[_Pair] = ("", "")


@dataclass(frozen=True, slots=True)
class _Change:
    code: str
    path: str
    uses: _Pair | None = None
    """If so, it is one only if this pair turns out to be incompatible."""


@dataclass(slots=True)
class _Comparison:
    """Old is who wrote, new who reads."""

    old_names: Names
    new_names: Names
    budget: Budget
    found: dict[_Pair, list[_Change]] = field(default_factory=dict)
    waiting: list[tuple[Type, Type]] = field(default_factory=list)
    current: list[_Change] = field(default_factory=list)

    def files(self, old: File, new: File) -> None:
        self.found[_FILES] = self.current
        top = _Place((), old.package or "", new.package or "")
        if old.package != new.package:
            self._add("PACKAGE_CHANGED", top)
        self._types(old.messages, new.messages, old.enums, new.enums, top)
        while self.waiting:
            before, after = self.waiting.pop()
            assert isinstance(before.element, Message) and isinstance(after.element, Message)
            self.current = self.found[before.full_name, after.full_name]
            path = tuple(after.local_name.split("."))
            self._message(before.element, after.element, _Place(path, before.full_name, after.full_name))

    def settled(self) -> Iterator[tuple[str, str]]:
        users: dict[_Pair, list[_Pair]] = {}
        bad: set[_Pair] = set()
        spreading: list[_Pair] = []
        for pair, found in self.found.items():
            for change in found:
                if change.uses is not None:
                    users.setdefault(change.uses, []).append(pair)
            if any(change.uses is None and change.code in INCOMPATIBLE for change in found):
                spreading.append(pair)
        while spreading:
            pair = spreading.pop()
            if pair not in bad:
                bad.add(pair)
                spreading += users.get(pair, ())
        for found in self.found.values():
            yield from ((each.code, each.path) for each in found if each.uses is None or each.uses in bad)

    def _add(self, code: str, place: _Place, uses: _Pair | None = None) -> None:
        self.current.append(_Change(code, "#/" + "/".join(place.path), uses))

    # --- types ---

    def _types(
        self,
        old: Iterable[Message],
        new: Iterable[Message],
        old_enums: Iterable[Enum],
        new_enums: Iterable[Enum],
        place: _Place,
    ) -> None:
        old_messages = {each.name: (n, each) for n, each in enumerate(old) if each.map_entry() is None}
        new_messages = {each.name: (n, each) for n, each in enumerate(new) if each.map_entry() is None}
        for name in _either(old_messages, new_messages):
            here = place.named(name)
            if name not in new_messages:
                self._add("MESSAGE_REMOVED", here)
            elif name not in old_messages:
                self._add("MESSAGE_ADDED", here)
            else:
                (before, old_message), (after, new_message) = old_messages[name], new_messages[name]
                self._message(old_message, new_message, here)
                if before != after:
                    self._add("MESSAGE_MOVED", here)
        olds, news = {each.name: each for each in old_enums}, {each.name: each for each in new_enums}
        for name in _either(olds, news):
            here = place.named(name)
            if name not in news:
                self._add("ENUM_REMOVED", here)
            elif name not in olds:
                self._add("ENUM_ADDED", here)
            else:
                self._enum(olds[name], news[name], here)

    def _enum(self, old: Enum, new: Enum, place: _Place) -> None:
        before = {each.number: each.name for each in old.constants}
        after = {each.number: each.name for each in new.constants}
        self.budget.spend(len(before) + len(after))
        for number in sorted(_either(before, after)):
            here = place.at(str(number))
            if number not in after:
                self._add("ENUM_CONST_REMOVED", here)
            elif number not in before:
                self._add("ENUM_CONST_ADDED", here)
            elif before[number] != after[number]:
                self._add("ENUM_CONST_CHANGED", here)

    def _message(self, old: Message, new: Message, place: _Place) -> None:
        before, after = _members(old), _members(new)
        self.budget.spend(1 + len(before.by_number) + len(after.by_number))
        self._oneofs(before, after, place)
        for number in sorted(_either(before.by_number, after.by_number)):
            self._member(number, before, after, place)
        self._types(old.messages, new.messages, old.enums, new.enums, place)

    # --- members ---

    def _oneofs(self, old: _Members, new: _Members, place: _Place) -> None:
        for name, numbers in new.oneofs.items():
            # Old data has one of each of these at most, and may have one of every one of them.
            origins: set[tuple[str, str | int]] = set()
            moved = 0
            for number in numbers:
                known = old.by_number.get(number)
                if known is None:
                    continue
                moved += known.oneof is None
                origins.add(("field", number) if known.oneof is None else ("oneof", known.oneof))
            if len(origins) > 1:
                code = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if moved > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
                self._add(code, place.at(name))
        for name in sorted(_either(old.oneofs, new.oneofs)):
            if name not in new.oneofs:
                self._add("ONEOF_REMOVED", place.at(name))
            elif name not in old.oneofs:
                self._add("ONEOF_ADDED", place.at(name))

    def _member(self, number: int, old: _Members, new: _Members, place: _Place) -> None:
        before, after = old.by_number.get(number), new.by_number.get(number)
        if after is None:
            assert before is not None
            self._removed(number, before, old, new, place)
        elif before is None:
            here = _at(place, after, number)
            required = after.field.label == "required"
            added = "REQUIRED_FIELD_ADDED" if required else "FIELD_ADDED"
            self._add(added if after.oneof is None else "ONEOF_FIELD_ADDED", here)
        else:
            if before.oneof is not None and after.oneof is None:
                self._add("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", place.at(str(number)))
            self._field(before.field, after.field, _at(place, after, number))

    def _removed(self, number: int, gone: _Member, old: _Members, new: _Members, place: _Place) -> None:
        here = _at(place, gone, number)
        if gone.oneof is None:
            self._add("REQUIRED_FIELD_REMOVED" if gone.field.label == "required" else "FIELD_REMOVED", here)
        elif gone.oneof in new.oneofs or any(each in new.by_number for each in old.oneofs[gone.oneof]):
            self._add("ONEOF_FIELD_REMOVED", here)

    def _field(self, old: Member, new: Member, place: _Place) -> None:
        if old.name != new.name:
            self._add("FIELD_NAME_CHANGED", place)
        if isinstance(old, Group) and isinstance(new, Group):
            below = _Place(place.path, within(place.old_scope, old.name), within(place.new_scope, new.name))
            self._message(old.body, new.body, below)
        elif isinstance(old, Group) or isinstance(new, Group):
            self._add("FIELD_KIND_CHANGED", place)
        else:
            label_changed = old.label is not None and new.label is not None and old.label != new.label
            self._kinds(old.type, new.type, place, label_changed=label_changed)

    # --- the types of fields ---

    def _kinds(self, old: str | MapOf, new: str | MapOf, place: _Place, *, label_changed: bool = False) -> None:
        before = _Kind.of(old, place.old_scope, self.old_names)
        after = _Kind.of(new, place.new_scope, self.new_names)
        if before.map is not None and after.map is not None:
            entries = _Place(place.path, before.scope, after.scope)
            self._kinds(before.map.key, after.map.key, entries)
            self._kinds(before.map.value, after.map.value, entries)
        elif before.map is not None or after.map is not None or (before.scalar is None) != (after.scalar is None):
            self._add("FIELD_KIND_CHANGED", place)
        elif before.scalar is None:
            self._messages(before, after, place)
        elif before.scalar != after.scalar:
            self._add("FIELD_SCALAR_KIND_CHANGED", place)
        elif label_changed:
            string = before.scalar == _STRINGS
            self._add("FIELD_STRING_OR_BYTES_LABEL_CHANGED" if string else "FIELD_NUMERIC_LABEL_CHANGED", place)

    def _messages(self, old: "_Kind", new: "_Kind", place: _Place) -> None:
        before, after = old.type, new.type
        if before is None or after is None:  # an old schema whose references are gone
            if old.name != new.name:
                self._add("FIELD_NAMED_TYPE_CHANGED", place)
        elif before.local_name != after.local_name:
            self._add("FIELD_NAMED_TYPE_CHANGED", place)
        elif not _same_source(before, after):
            pair = (before.full_name, after.full_name)
            if pair not in self.found:
                self.found[pair] = []
                self.waiting.append((before, after))
            self._add("FIELD_NAMED_TYPE_CHANGED", place, uses=pair)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What lies on the wire: a scalar of a group, a map, or a message."""

    name: str
    scope: str
    scalar: int | None = None
    map: MapOf | None = None
    type: Type | None = None

    @classmethod
    def of(cls, name: str | MapOf, scope: str, names: Names) -> "_Kind":
        if isinstance(name, MapOf):
            return cls("map", scope, map=name)
        if name in SCALAR_NAMES:
            return cls(name, scope, scalar=_GROUP_OF[name])
        found = names.find(name, scope)
        if found is None:
            return cls(name, scope)
        if isinstance(found.element, Enum):
            return cls(name, scope, scalar=_NUMBERS, type=found)
        return cls(name, found.full_name, map=found.map_entry(), type=found)


def _same_source(old: Type, new: Type) -> bool:
    """Then nothing is to be compared: both are in the files themselves, which are compared anyway, or in one file."""
    if old.source is None or new.source is None:
        return old.source is new.source
    before, after = old.source.reference, new.source.reference
    if before is None or after is None:
        return before is after
    return (before.subject, before.version) == (after.subject, after.version)


def _members(of: Message) -> _Members:
    members = _Members({}, {})
    for each in of.members():
        members.by_number[each.number] = _Member(each, None)
    for oneof in of.oneofs:
        for each in oneof.members():
            members.by_number[each.number] = _Member(each, oneof.name)
        members.oneofs[oneof.name] = [each.number for each in oneof.members()]
    return members


def _at(place: _Place, member: _Member, number: int) -> _Place:
    return place.at(str(number)) if member.oneof is None else place.at(member.oneof, str(number))


def _either(*of: Iterable[K]) -> list[K]:
    """The keys of both, each once, in the order of the first and then the second."""
    return list(dict.fromkeys(key for each in of for key in each))
