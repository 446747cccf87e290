"""Which message of a schema a record holds: the path of indexes that Confluent's wire format puts before it.

[0] is the first message of the file, [1, 0] the first that is nested in the second. Nested messages come in the order
in which they stand; the types of groups and of maps' entries follow, unless a schema was sent as a descriptor: then
they are messages with a place of their own.
"""

from collections.abc import Iterable, Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from ottla.registry.schemas.protobuf.names import within

Indexes = tuple[int, ...]


def name_at(file: FileDescriptorProto, indexes: Sequence[int]) -> str:
    """The full name of the message. Raises LookupError if there is none."""
    scope = file.package
    messages: Sequence[DescriptorProto] = file.message_type
    if not indexes:
        raise LookupError("no indexes: [0] is the first message")
    for index in indexes:
        if not 0 <= index < len(messages):
            raise LookupError(f"there is no message at {list(indexes)}")
        scope = within(scope, messages[index].name)
        messages = messages[index].nested_type
    return scope


def indexes_of(file: FileDescriptorProto, full_name: str) -> Indexes:
    """Raises LookupError if the file has no such message."""
    for name, indexes in _all(file.message_type, file.package, ()):
        if name == full_name:
            return indexes
    raise LookupError(f"the schema has no message {full_name}")


def _all(messages: Iterable[DescriptorProto], scope: str, outer: Indexes) -> Iterable[tuple[str, Indexes]]:
    for n, message in enumerate(messages):
        name = within(scope, message.name)
        yield name, (*outer, n)
        yield from _all(message.nested_type, name, (*outer, n))
