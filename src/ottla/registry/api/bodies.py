"""What clients send. Members that are not known are ignored, null means absent."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ottla.registry.entities import ConfigValue, Metadata, RuleSet, sorted_metadata, sorted_rules
from ottla.registry.machine.commands import ModifyTags, Register, Sent, Tags
from ottla.registry.schemas.base import Reference

_Number = Annotated[int, Meta(ge=-1, le=(1 << 31) - 1)]


class ReferenceBody(msgspec.Struct):
    name: str
    subject: str
    version: _Number


class Entity(msgspec.Struct, rename="camel", omit_defaults=True):
    entity_path: str
    entity_type: str | None = None


class SchemaTags(msgspec.Struct, rename="camel"):
    schema_entity: Entity
    tags: list[str]


class SchemaBody(msgspec.Struct, rename="camel"):
    """A schema, for registering, finding and checking alike."""

    schema: str | None = None
    schema_type: str | None = None
    references: list[ReferenceBody] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    id: _Number | None = None
    version: _Number | None = None
    schema_tags_to_add: list[SchemaTags] | None = None
    schema_tags_to_remove: list[SchemaTags] | None = None
    propagate_schema_tags: bool | None = None

    def sent(self) -> Sent:
        return Sent(
            self.schema or "",
            self.schema_type or "AVRO",
            tuple(Reference(each.name, each.subject, each.version) for each in self.references or ()),
            sorted_metadata(self.metadata),
            sorted_rules(self.rule_set),
        )

    def register(self, subject: str, *, normalize: bool, force: bool) -> Register:
        return Register(
            subject,
            self.sent(),
            self.id if self.id is not None and self.id >= 0 else None,
            self.version or 0,
            normalize,
            force,
            _tags(self.schema_tags_to_add),
            _tags(self.schema_tags_to_remove),
            bool(self.propagate_schema_tags),
        )


class TagBody(msgspec.Struct, rename="camel"):
    new_version: _Number | None = None
    tags_to_add: list[SchemaTags] | None = None
    tags_to_remove: list[SchemaTags] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: list[str] | None = None

    def modify(self, subject: str, version: int) -> ModifyTags:
        return ModifyTags(
            subject,
            version,
            max(self.new_version or 0, 0),
            _tags(self.tags_to_add),
            _tags(self.tags_to_remove),
            sorted_metadata(self.metadata),
            sorted_rules(self.rule_set),
            sorted_rules(self.rules_to_merge),
            tuple(self.rules_to_remove or ()),
        )


class ConfigBody(msgspec.Struct, rename="camel", omit_defaults=True):
    """Of a member that is absent nothing changes; one that is null is taken away."""

    alias: str | UnsetType | None = UNSET
    alias_for_deks: str | UnsetType | None = UNSET
    normalize: bool | UnsetType | None = UNSET
    validate_fields: bool | UnsetType | None = UNSET
    validate_new_schemas: bool | UnsetType | None = UNSET
    validate_names: bool | UnsetType | None = UNSET
    validate_rules: bool | UnsetType | None = UNSET
    compatibility: str | UnsetType | None = UNSET
    compatibility_policy: str | UnsetType | None = UNSET
    compatibility_group: str | UnsetType | None = UNSET
    default_metadata: Metadata | UnsetType | None = UNSET
    override_metadata: Metadata | UnsetType | None = UNSET
    default_rule_set: RuleSet | UnsetType | None = UNSET
    override_rule_set: RuleSet | UnsetType | None = UNSET

    def changes(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        changes = {name: value for name, value in found.items() if value is not UNSET}
        if "compatibility" in changes:
            changes["compatibility_level"] = changes.pop("compatibility")
        for name in ("default_metadata", "override_metadata"):
            if name in changes:
                changes[name] = sorted_metadata(changes[name])
        for name in ("default_rule_set", "override_rule_set"):
            if name in changes:
                changes[name] = sorted_rules(changes[name])
        return changes

    @classmethod
    def of(cls, value: ConfigValue) -> "ConfigBody":
        """As a PUT is answered: the level is called compatibility there."""
        said = {name: getattr(value, name) for name in value.__struct_fields__ if name != "subject"}
        said["compatibility"] = said.pop("compatibility_level")
        return cls(**{name: each for name, each in said.items() if each is not None})


class ModeBody(msgspec.Struct):
    mode: str | None = None


def _tags(said: list[SchemaTags] | None) -> Tags:
    found: dict[str, frozenset[str]] = {}
    for each in said or ():
        path = each.schema_entity.entity_path
        found[path] = found.get(path, frozenset()) | frozenset(each.tags)
    return found
