"""A Protobuf schema, and the language that makes one of a text."""

import re
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from ottla.registry.schemas.base import (
    Budget,
    Difference,
    InvalidSchema,
    LanguageName,
    Policy,
    Resolved,
    Schema,
)
from ottla.registry.schemas.protobuf import compatibility, indexes, tags
from ottla.registry.schemas.protobuf.extensions import without_extensions
from ottla.registry.schemas.protobuf.from_descriptor import has_broken_text, tree_of
from ottla.registry.schemas.protobuf.names import Imported, Names, names_of
from ottla.registry.schemas.protobuf.normal import normal
from ottla.registry.schemas.protobuf.option_values import Extended, OptionTypes
from ottla.registry.schemas.protobuf.parser import CHARACTERS_PER_STEP, parse
from ottla.registry.schemas.protobuf.pools import DEFAULT_PATH, find_imports, pool_of
from ottla.registry.schemas.protobuf.printer import printed
from ottla.registry.schemas.protobuf.to_descriptor import descriptor_of
from ottla.registry.schemas.protobuf.tree import File
from ottla.registry.schemas.protobuf.validity import check

_BASE64: Final = re.compile(r"\s*[A-Za-z0-9+/\s]+=*\s*")
"""No .proto file that says anything goes without a semicolon or a brace."""
_REMEMBERED: Final = 256
"""Files that others refer to, kept parsed."""


class ProtobufSchema:
    language: LanguageName = "PROTOBUF"

    def __init__(self, file: File, given: Mapping[str, Imported], text: str | None = None) -> None:
        self.file = file
        self.text = printed(file) if text is None else text
        self._given = given

    # --- what the registry asks ---

    def normalized(self) -> "ProtobufSchema":
        """Raises InvalidSchema if a name means nothing, which is not the case in a schema that was new."""
        text = printed(normal(self.file, self.names))
        # Its options are sorted, defaults among them; a tree has no order for those.
        return ProtobufSchema(_parsed(text), self._given, text)

    def formatted(self, name: str) -> str:
        if name == "serialized":
            return b64encode(self.descriptor().SerializeToString(deterministic=True)).decode()
        if name == "ignore_extensions":
            return printed(without_extensions(self.file))
        return self.text

    def reading(self, writer: Schema, policy: Policy, budget: Budget) -> tuple[Difference, ...]:
        assert isinstance(writer, ProtobufSchema), "a change of language is not for a language to judge"
        return compatibility.differences(self._side, writer._side, budget)

    def tags(self) -> dict[str, frozenset[str]]:
        return tags.tags_of(self.file)

    def records(self) -> frozenset[str]:
        return frozenset(tags.messages(self.file))

    def carriers(self) -> frozenset[str]:
        return frozenset(path for path, _ in tags.carriers(self.file))

    def with_tags(self, add: dict[str, frozenset[str]], remove: dict[str, frozenset[str]]) -> "ProtobufSchema":
        return ProtobufSchema(tags.with_tags(self.file, add, remove), self._given)

    # --- what serdes ask ---

    def descriptor(self) -> FileDescriptorProto:
        """Named `default`, with custom options if the runtime can make sense of them."""
        if not self._custom:
            return self._plain
        try:
            types = OptionTypes(Extended(self.names, self.pool()))
        except InvalidSchema:  # taken long ago by somebody less strict
            types = OptionTypes()
        return descriptor_of(self.file, self.names, DEFAULT_PATH, types)

    def pool(self) -> DescriptorPool:
        """A new one, with this schema as the file `default` and all that it imports. Raises InvalidSchema."""
        return pool_of(self.file, self._imports, self.names)

    def message_name(self, of: Sequence[int]) -> str:
        """The full name of the message with these indexes. Raises LookupError."""
        return indexes.name_at(self._plain, of)

    def message_indexes(self, full_name: str) -> indexes.Indexes:
        """Raises LookupError."""
        return indexes.indexes_of(self._plain, full_name)

    # --- made when it is asked for ---

    @property
    def _custom(self) -> bool:
        """Whether it may have custom options: they are printed as (name) = value, or (name).field = value."""
        return ") = " in self.text or ")." in self.text

    @cached_property
    def _imports(self) -> dict[str, Imported]:
        return find_imports(self.file, self._given, meta=self._custom and "confluent." in self.text)

    @cached_property
    def names(self) -> Names:
        return names_of(self.file, self._imports.values())

    @cached_property
    def _side(self) -> compatibility.Side:
        return compatibility.Side(self.file, self.names)

    @cached_property
    def _plain(self) -> FileDescriptorProto:
        return descriptor_of(self.file, self.names, DEFAULT_PATH, OptionTypes())

    def check(self) -> None:
        """Raises InvalidSchema if it is not fit to be registered."""
        check(self.file, self._imports, self.names, custom=self._custom)


class Protobuf:
    name: LanguageName = "PROTOBUF"

    def parse(self, text: str, resolved: Sequence[Resolved], budget: Budget, *, new: bool) -> ProtobufSchema:
        given: dict[str, Imported] = {}
        for each in resolved:
            if each.reference.name not in given:
                file = _referred(each, budget)
                given[each.reference.name] = Imported(each.reference.name, file, each.reference)
        schema = _sent_as_descriptor(text, given, budget) if _BASE64.fullmatch(text) else None
        if schema is None:
            schema = ProtobufSchema(parse(text, budget), given)
        if new:
            if not schema.text.strip():
                raise InvalidSchema("it declares nothing")
            schema.check()
        return schema


def _referred(to: Resolved, budget: Budget) -> File:
    budget.spend(1 + len(to.text) // CHARACTERS_PER_STEP)  # whether it is remembered or not
    try:
        return _parsed(to.text)
    except InvalidSchema as error:
        raise InvalidSchema(f"the reference {to.reference.name!r} cannot be read: {error}") from None


@lru_cache(_REMEMBERED)
def _parsed(text: str) -> File:
    return parse(text, Budget(1 + len(text)))


def _sent_as_descriptor(text: str, given: Mapping[str, Imported], budget: Budget) -> ProtobufSchema | None:
    budget.spend(1 + len(text) // CHARACTERS_PER_STEP)
    try:
        serialized = b64decode("".join(text.split()), validate=True)
        descriptor = FileDescriptorProto.FromString(serialized)
    except NoBase64:
        return None
    except DecodeError:
        raise InvalidSchema("it is neither a .proto file nor the base64 of a FileDescriptorProto") from None
    if has_broken_text(descriptor):
        raise InvalidSchema("the FileDescriptorProto holds text that is not UTF-8")
    plain = _reparsed(tree_of(descriptor), given, budget)
    imports = find_imports(plain.file, given, meta=True)
    names = names_of(plain.file, imports.values())
    try:
        types = OptionTypes(Extended(names, pool_of(plain.file, imports, names)))
    except InvalidSchema:
        return plain
    try:
        complete = tree_of(descriptor, types.read)
    except DecodeError as error:
        raise InvalidSchema(f"a custom option in the FileDescriptorProto cannot be read: {error}") from None
    return _reparsed(complete, given, budget)


def _reparsed(file: File, given: Mapping[str, Imported], budget: Budget) -> ProtobufSchema:
    """What a descriptor says has been checked by nobody: names with blanks in them, levels without end."""
    return ProtobufSchema(parse(printed(file), budget), given)
