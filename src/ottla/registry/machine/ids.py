"""Ids: shared by equal schemas of one context, never given to another schema, whatever was deleted since.

A compacted topic forgets what was deleted for good, and with it that its id was used. So the highest ids are written
down (`entities.Kept`, the value of a NOOP) together with every record that takes a schema away.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.registry.machine.names import DEFAULT_CONTEXT, context_of
from ottla.registry.machine.versions import SchemaVersion

Place = tuple[str, int]
"""A subject and a version of it."""


@dataclass(slots=True)
class _Id:
    guid: str
    places: dict[Place, None] = field(default_factory=dict)
    """Where the schema is registered, deleted ones included."""


@dataclass(slots=True)
class _Context:
    highest: int = 0
    ids: dict[int, _Id] = field(default_factory=dict)
    by_guid: dict[str, dict[int, None]] = field(default_factory=dict)
    """Several ids, where one schema was imported under each."""


class Ids:
    __slots__ = ("_contexts",)

    def __init__(self) -> None:
        self._contexts: dict[str, _Context] = {}

    # Questions.

    def next(self, context: str) -> int:
        return self.highest(context) + 1

    def highest(self, context: str) -> int:
        found = self._contexts.get(context)
        return found.highest if found is not None else 0

    def of_guid(self, guid: str, context: str) -> int | None:
        """The id of that schema, if it is registered anywhere in the context, softly deleted or not. Of several the
        highest: what stands decides, not the order in which it was written, which a compacted topic does not keep."""
        found = self._contexts.get(context)
        return max(found.by_guid.get(guid, ()), default=None) if found is not None else None

    def guid(self, id: int, context: str) -> str | None:
        found = self._contexts.get(context)
        known = found.ids.get(id) if found is not None else None
        return known.guid if known is not None else None

    def places(self, id: int, context: str) -> list[Place]:
        """In the order of subjects and versions."""
        found = self._contexts.get(context)
        known = found.ids.get(id) if found is not None else None
        return sorted(known.places) if known is not None else []

    def contexts(self) -> Iterator[str]:
        """Of all ids; the default one first."""
        yield from sorted(self._contexts, key=lambda each: (each != DEFAULT_CONTEXT, each))

    # Changes.

    def fits(self, version: SchemaVersion) -> bool:
        """Whether its id is free, or its own."""
        guid = self.guid(version.id, context_of(version.subject))
        return guid is None or guid == version.guid

    def add(self, version: SchemaVersion) -> None:
        context = self._contexts.setdefault(context_of(version.subject), _Context())
        known = context.ids.setdefault(version.id, _Id(version.guid))
        assert known.guid == version.guid, f"id {version.id} for two schemas"
        known.places[version.subject, version.version] = None
        context.by_guid.setdefault(version.guid, {})[version.id] = None
        context.highest = max(context.highest, version.id)

    def remove(self, version: SchemaVersion) -> None:
        context = self._contexts[context_of(version.subject)]
        known = context.ids[version.id]
        del known.places[version.subject, version.version]
        if not known.places:
            del context.ids[version.id]
            del context.by_guid[known.guid][version.id]
            if not context.by_guid[known.guid]:
                del context.by_guid[known.guid]

    def used(self, context: str, highest: int) -> None:
        """Told by a NOOP: ids up to this one were given."""
        found = self._contexts.setdefault(context, _Context())
        found.highest = max(found.highest, highest)
