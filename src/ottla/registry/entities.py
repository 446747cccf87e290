"""What REST and topic write alike: metadata and rules of schemas, and the values of the records of `_schemas`.

Empty members are left out, except those that Confluent always writes (`deleted`, `disabled`, a rule's kind and mode):
these have a default that is made, not given, which msgspec never takes for the value itself.
"""

from typing import Any, Final, Literal

import msgspec

from ottla.registry.schemas.base import Reference

Mode = Literal["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"]
Level = Literal[
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"
]  # fmt: skip
RuleKind = Literal["TRANSFORM", "CONDITION"]
RuleMode = Literal["UPGRADE", "DOWNGRADE", "UPDOWN", "READ", "WRITE", "WRITEREAD"]

VERSION_PROPERTY: Final = "confluent:version"
"""Of metadata: the version that a schema was given by number."""


def _no() -> bool:
    return False


def _transform() -> RuleKind:
    return "TRANSFORM"


def _both_ways() -> RuleMode:
    return "WRITEREAD"


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    name: str | None = None
    doc: str | None = None
    kind: RuleKind | None = msgspec.field(default_factory=_transform)
    mode: RuleMode | None = msgspec.field(default_factory=_both_ways)
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = msgspec.field(default_factory=_no)


class RuleSet(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None
    enable_at: str | None = None


# What lies in the topic, by the type of its key.


class SchemaValue(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    subject: str
    version: int
    id: int
    schema_type: str = msgspec.field(default_factory=lambda: "AVRO")
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str = msgspec.field(default_factory=str)
    deleted: bool = msgspec.field(default_factory=_no)


class ConfigValue(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A subject's, a context's or the global settings: only what was set is there."""

    subject: str | None = None
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_names: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


class ModeValue(msgspec.Struct, frozen=True, omit_defaults=True):
    mode: Mode
    subject: str | None = None


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of a NOOP of ours (Confluent's readers do not look at it): numbers that were used and that nothing else
    in a compacted topic tells of any more."""

    ids: dict[str, int] = {}
    """By context: the highest id that was ever given."""
    versions: dict[str, int] = {}
    """By subject: the highest version, where that one was deleted for good and others still stand."""


def sorted_metadata(metadata: Metadata | None) -> Metadata | None:
    """As Java's sorted maps and sets would write it."""
    if metadata is None:
        return None
    tags, properties, sensitive = metadata.tags, metadata.properties, metadata.sensitive
    return Metadata(
        tags={path: sorted(dict.fromkeys(tags[path])) for path in sorted(tags)} if tags else None,
        properties=dict(sorted(properties.items())) if properties else None,
        sensitive=sorted(dict.fromkeys(sensitive)) if sensitive else None,
    )


def sorted_rules(rules: RuleSet | None) -> RuleSet | None:
    if rules is None:
        return None
    return RuleSet(
        _sorted_rules(rules.migration_rules),
        _sorted_rules(rules.domain_rules),
        _sorted_rules(rules.encoding_rules),
        rules.enable_at,
    )


def _sorted_rules(rules: list[Rule] | None) -> list[Rule] | None:
    return [_sorted_rule(rule) for rule in rules] if rules else None


def _sorted_rule(rule: Rule) -> Rule:
    changes: dict[str, Any] = {
        "kind": rule.kind or _transform(),
        "mode": rule.mode or _both_ways(),
        "tags": sorted(dict.fromkeys(rule.tags)) if rule.tags else None,
        "params": dict(sorted(rule.params.items())) if rule.params else None,
        "disabled": bool(rule.disabled),
    }
    return msgspec.structs.replace(rule, **changes)
