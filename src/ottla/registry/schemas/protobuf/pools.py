"""Descriptor pools: the runtime's own judgement of a schema, and where its messages' classes come from.

A pool is never given a descriptor that somebody sent: only ones that were made here, of trees that were parsed.
"""

from collections.abc import Mapping
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.protobuf.known import META, known, known_descriptor
from ottla.registry.schemas.protobuf.names import Imported, Names
from ottla.registry.schemas.protobuf.option_values import OptionTypes
from ottla.registry.schemas.protobuf.to_descriptor import descriptor_of
from ottla.registry.schemas.protobuf.tree import File

DEFAULT_PATH: Final = "default"
"""The name of a file that has none, as in Confluent's descriptors."""

_PLAIN: Final = OptionTypes()
_PREFIX: Final = "Couldn't build proto file into descriptor pool:"


def find_imports(file: File, given: Mapping[str, Imported], *, meta: bool) -> dict[str, Imported]:
    """All files that it needs, each after those that it needs itself. One that nobody has is left out.

    `meta`: Confluent's options are needed, too. Its server writes tags into a schema without adding the import.
    """
    found: dict[str, Imported] = {}
    waiting = [(path, False) for path in (*reversed(_paths(file)), *((META,) if meta else ()))]
    seen: set[str] = set()
    while waiting:
        path, ready = waiting.pop()
        source = given.get(path) or known(path)
        if source is None:
            continue
        if ready:
            found[path] = source
        elif path not in seen:
            seen.add(path)
            waiting.append((path, True))
            waiting += [(each, False) for each in reversed(_paths(source.file))]
    return found


def _paths(file: File) -> list[str]:
    return [each.path for each in file.imports]


def pool_of(file: File, imports: Mapping[str, Imported], names: Names, *, strict: bool = False) -> DescriptorPool:
    """With the file and its imports in it. Raises InvalidSchema if they do not make sense to the runtime."""
    pool = DescriptorPool()
    added: set[str] = set()
    for path, source in imports.items():
        descriptor = known_descriptor(path) if source.reference is None else None
        if descriptor is None:
            descriptor = descriptor_of(source.file, names, path, _PLAIN)
        _add(pool, descriptor, added)
    _add(pool, descriptor_of(file, names, DEFAULT_PATH, OptionTypes(strict=strict)), added)
    return pool


def _add(pool: DescriptorPool, descriptor: FileDescriptorProto, added: set[str]) -> None:
    if not added.issuperset(descriptor.dependency):
        # Only what is needed has to be there: a file with options alone may be missing, as Confluent has it.
        kept = [path for path in descriptor.dependency if path in added]
        descriptor = FileDescriptorProto.FromString(descriptor.SerializeToString())
        for unused in ("dependency", "public_dependency", "weak_dependency", "option_dependency"):
            descriptor.ClearField(unused)
        descriptor.dependency.extend(kept)
    try:
        pool.Add(descriptor)
    except TypeError as error:
        raise InvalidSchema(str(error).removeprefix(_PREFIX).strip()) from None
    added.add(descriptor.name)
