"""What clients are answered. Empty members are left out."""

from collections.abc import Sequence

import msgspec

from ottla.registry.api.bodies import Entity, SchemaTags
from ottla.registry.entities import Metadata, RuleSet
from ottla.registry.machine.names import in_context_of
from ottla.registry.machine.versions import SchemaVersion
from ottla.registry.schemas.base import Reference, Schema


class SchemaReply(msgspec.Struct, rename="camel", omit_defaults=True):
    subject: str | None = None
    version: int | None = None
    id: int | None = None
    guid: str | None = None
    schema_type: str | None = None
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str | None = None
    schema_tags: list[SchemaTags] | None = None
    ts: int | None = None
    deleted: bool | None = None
    max_id: int | None = None
    aliases: list[str] | None = None


class SubjectVersion(msgspec.Struct):
    subject: str
    version: int


class ContextId(msgspec.Struct):
    context: str
    id: int


class Compatibility(msgspec.Struct, omit_defaults=True):
    is_compatible: bool
    messages: list[str] | None = None


class ModeReply(msgspec.Struct):
    mode: str


def of_version(version: SchemaVersion, text: str | None = None, *, qualified: bool = False) -> SchemaReply:
    """All that is known of it; who answers with less takes members away."""
    references = version.references
    if qualified:
        references = tuple(
            Reference(each.name, in_context_of(version.subject, each.subject), each.version) for each in references
        )
    return SchemaReply(
        subject=version.subject,
        version=version.version,
        id=version.id,
        guid=version.guid,
        schema_type=version.schema_type,
        references=references,
        metadata=version.metadata,
        rule_set=version.rule_set,
        schema=version.text if text is None else text,
        ts=version.timestamp,
        deleted=version.deleted,
    )


def of_registered(version: SchemaVersion, text: str | None = None) -> SchemaReply:
    """What was registered, without when."""
    reply = of_version(version, text)
    reply.ts = reply.deleted = reply.subject = None
    return reply


def of_found(version: SchemaVersion, text: str | None = None) -> SchemaReply:
    reply = of_version(version, text)
    reply.ts = reply.deleted = None
    return reply


def tags_of(schema: Schema, wanted: Sequence[str]) -> list[SchemaTags] | None:
    """Those of what carries one of the wanted tags; `*` means any."""
    records = schema.records()
    return [
        SchemaTags(Entity(path, "sr_record" if path in records else "sr_field"), sorted(tags))
        for path, tags in sorted(schema.tags().items())
        if "*" in wanted or not tags.isdisjoint(wanted)
    ] or None
