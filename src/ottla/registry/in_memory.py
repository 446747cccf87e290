"""A registry in memory, for whoever reads and writes schemas: it travels by pickle with all it knows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import md5
from uuid import UUID

from ottla.registry.lookup import Registered, RegistryUnavailable, UnknownSchema
from ottla.registry.schemas.base import LanguageName, Reference, Resolved


@dataclass
class MemoryRegistry:
    schemas: list[Registered] = field(default_factory=list)
    subjects: dict[str, list[Registered]] = field(default_factory=dict)
    is_away: bool = False
    asked: list[str] = field(default_factory=list, compare=False)

    def by_id(self, schema_id: int) -> Registered:
        self._ask(f"id {schema_id}")
        if not 0 < schema_id <= len(self.schemas):
            raise UnknownSchema(f"Schema {schema_id} not found (error code 40403)")
        return self.schemas[schema_id - 1]

    def by_guid(self, guid: str) -> Registered:
        self._ask(f"guid {guid}")
        for each in self.schemas:
            if each.guid == guid:
                return each
        raise UnknownSchema(f"Schema {guid} not found (error code 40403)")

    def latest(self, subject: str) -> Registered:
        self._ask(f"latest {subject}")
        if subject not in self.subjects:
            raise UnknownSchema(f"Subject '{subject}' not found. (error code 40401)")
        return self.subjects[subject][-1]

    def resolve(self, references: Sequence[Reference]) -> tuple[Resolved, ...]:
        return tuple(Resolved(each, self.subjects[each.subject][each.version - 1].text) for each in references)

    def register(
        self, subject: str, language: LanguageName, text: str, references: Sequence[Reference] = ()
    ) -> Registered:
        self._ask(f"register {subject}")
        known = self._known(language, text)
        if known is None:
            guid = str(UUID(bytes=md5(text.encode()).digest()))
            resolved = self.resolve(references)
            known = Registered(len(self.schemas) + 1, guid, language, text, tuple(references), resolved)
            self.schemas.append(known)
        versions = self.subjects.setdefault(subject, [])
        if known not in versions:
            versions.append(known)
        return known

    def find(self, subject: str, language: LanguageName, text: str, references: Sequence[Reference] = ()) -> Registered:
        self._ask(f"find {subject}")
        known = self._known(language, text)
        if known is None or known not in self.subjects.get(subject, ()):
            raise UnknownSchema("Schema not found (error code 40403)")
        return known

    def _known(self, language: LanguageName, text: str) -> Registered | None:
        return next((each for each in self.schemas if (each.language, each.text) == (language, text)), None)

    def _ask(self, what: str) -> None:
        if self.is_away:
            raise RegistryUnavailable("the schema registry cannot be asked: nobody is there")
        self.asked.append(what)
