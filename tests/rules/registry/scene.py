"""A registry's core as tests drive it: commands in, and what it says; the topic is a list."""

from dataclasses import dataclass, field
from typing import Any

from ottla.registry.entities import Metadata, RuleSet
from ottla.registry.journal.codec import decode, encode
from ottla.registry.machine import commands as c
from ottla.registry.machine.machine import Machine, Rules
from ottla.registry.machine.records import Record, SchemaPut
from ottla.registry.machine.refusals import Refusal
from ottla.registry.machine.versions import SchemaVersion
from ottla.registry.schemas.base import Reference
from tests.support.toy_language import TOY_LANGUAGES

Bytes = tuple[bytes, bytes | None, int]


@dataclass
class Scene:
    machine: Machine = field(default_factory=lambda: Machine(TOY_LANGUAGES))
    topic: list[Bytes] = field(default_factory=list)

    def tell(self, command: c.Command) -> Any:
        """The reply, once what was decided lies in the topic and is replayed out of its bytes."""
        decision = self.machine.decide(command)
        for record in decision.records:
            self.write(record)
        return decision.reply

    def write(self, record: Record) -> None:
        timestamp = len(self.topic)
        key, value = encode(record)
        self.topic.append((key, value, timestamp))
        found = decode(key, value)
        assert found is not None
        assert self.machine.replay(found, timestamp) is None

    def refused(self, command: c.Command) -> int:
        before = len(self.topic)
        reply = self.tell(command)
        assert isinstance(reply, Refusal), reply
        assert len(self.topic) == before
        return reply.code

    def register(self, subject: str, text: str, **more: Any) -> SchemaVersion:
        reply = self.tell(register(subject, text, **more))
        assert isinstance(reply, SchemaVersion), reply
        return reply

    def numbers(self, subject: str) -> dict[int, bool]:
        """Versions, and whether they are deleted."""
        found = self.machine.state.subject(subject)
        return {} if found is None else {each.version: each.deleted for each in found.versions.values()}

    def restarted(self, *, compacted: bool = False) -> "Scene":
        """Another one, from the topic alone."""
        topic = compact(self.topic) if compacted else self.topic
        other = Scene(Machine(TOY_LANGUAGES, self.machine.rules))
        for key, value, timestamp in topic:
            record = decode(key, value)
            assert record is not None
            assert other.machine.replay(record, timestamp) is None
        other.topic = list(topic)
        return other


def compact(topic: list[Bytes]) -> list[Bytes]:
    """As a cleaner leaves it when tombstones have had their time."""
    last = {key: index for index, (key, _, _) in enumerate(topic)}
    return [each for index, each in enumerate(topic) if last[each[0]] == index and each[1] is not None]


def register(
    subject: str,
    text: str,
    *,
    schema_type: str = "AVRO",
    references: tuple[Reference, ...] = (),
    metadata: Metadata | None = None,
    rules: RuleSet | None = None,
    **more: Any,
) -> c.Register:
    return c.Register(subject, c.Sent(text, schema_type, references, metadata, rules), **more)


def with_rules(**rules: Any) -> Scene:
    return Scene(Machine(TOY_LANGUAGES, Rules(**rules)))


def written(scene: Scene, kind: type[Record]) -> list[Record]:
    found = [decode(key, value) for key, value, _ in scene.topic]
    return [each for each in found if isinstance(each, kind)]


__all__ = ["Scene", "SchemaPut", "compact", "register", "with_rules", "written"]
