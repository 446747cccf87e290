"""What a name in a .proto file means: the types and the extensions of a file and of all that it can import."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ottla.registry.schemas.base import Reference
from ottla.registry.schemas.protobuf.tree import Enum, Extend, File, MapOf, Member, Message


@dataclass(frozen=True, slots=True)
class Imported:
    """A file that can be imported."""

    path: str
    file: File
    reference: Reference | None = None
    """None: everybody has it (google/protobuf, google/type, confluent)."""


@dataclass(frozen=True, slots=True)
class Type:
    full_name: str
    package: str
    element: Message | Enum
    source: Imported | None
    """None: the file itself."""
    of_group: bool = False

    @property
    def local_name(self) -> str:
        """Without the package."""
        return self.full_name.removeprefix(f"{self.package}.") if self.package else self.full_name

    def map_entry(self) -> MapOf | None:
        return self.element.map_entry() if isinstance(self.element, Message) else None


@dataclass(frozen=True, slots=True)
class Extension:
    full_name: str
    field: Member

    @property
    def repeated(self) -> bool:
        return self.field.label == "repeated"


@dataclass(slots=True)
class Names:
    types: dict[str, Type] = field(default_factory=dict)
    extensions: dict[str, Extension] = field(default_factory=dict)

    def find(self, name: str, scope: str) -> Type | None:
        """The type that a name means inside of a scope, which is a package or the full name of a message."""
        full_name = _resolved(self.types, name, scope)
        return None if full_name is None else self.types[full_name]

    def find_extension(self, name: str, scope: str) -> Extension | None:
        full_name = _resolved(self.extensions, name, scope)
        return None if full_name is None else self.extensions[full_name]

    def add(self, file: File, source: Imported | None) -> None:
        package = file.package or ""
        self._add_types(file.messages, file.enums, package, package, source)
        self._add_extends(file.extends, package, package, source)

    def _add_types(
        self, messages: Iterable[Message], enums: Iterable[Enum], scope: str, package: str, source: Imported | None
    ) -> None:
        for message in messages:
            self._add_message(message, scope, package, source)
        for enum in enums:
            name = within(scope, enum.name)
            self.types[name] = Type(name, package, enum, source)

    def _add_message(
        self, message: Message, scope: str, package: str, source: Imported | None, *, of_group: bool = False
    ) -> None:
        name = within(scope, message.name)
        self.types[name] = Type(name, package, message, source, of_group)
        self._add_types(message.messages, message.enums, name, package, source)
        for group in (*message.groups, *(group for oneof in message.oneofs for group in oneof.groups)):
            self._add_message(group.body, name, package, source, of_group=True)
        self._add_extends(message.extends, name, package, source)

    def _add_extends(self, extends: Iterable[Extend], scope: str, package: str, source: Imported | None) -> None:
        for extend in extends:
            for each in extend.members():
                name = within(scope, each.name)
                self.extensions[name] = Extension(name, each)
            for group in extend.groups:
                self._add_message(group.body, scope, package, source, of_group=True)


def within(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def scopes(scope: str) -> Iterator[str]:
    """From the innermost to that of all files."""
    while scope:
        yield scope
        scope = scope.rpartition(".")[0]
    yield ""


def _resolved(known: Mapping[str, object], name: str, scope: str) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in known else None
    return next((full for each in scopes(scope) if (full := within(each, name)) in known), None)


def names_of(file: File, imported: Iterable[Imported]) -> Names:
    """Its own types hide those of the same name elsewhere."""
    names = Names()
    for each in imported:
        names.add(each.file, each)
    names.add(file, None)
    return names
