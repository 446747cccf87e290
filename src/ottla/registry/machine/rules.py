"""Metadata and rule sets: whether they may be, and how defaults, what was sent and overrides become one.

Rules run in clients; the server keeps them, which Confluent's free one does not.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ottla.registry.entities import VERSION_PROPERTY, ConfigValue, Metadata, Rule, RuleSet
from ottla.registry.machine import refusals

_MIGRATION: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN: Final = ("WRITE", "READ", "WRITEREAD")


class Carried(NamedTuple):
    """What a schema carries besides its text."""

    metadata: Metadata | None
    rules: RuleSet | None


def check(rules: RuleSet | None) -> None:
    """Raises Refusal 42210."""
    if rules is None:
        return
    names: dict[str, None] = {}
    _check(rules.migration_rules, names, _MIGRATION, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")
    _check(rules.domain_rules, names, _DOMAIN, "Domain rules can only be WRITE, READ, WRITEREAD")
    _check(rules.encoding_rules, names, _DOMAIN, "Encoding rules can only be WRITE, READ, WRITEREAD")


def _check(rules: Iterable[Rule] | None, names: dict[str, None], modes: tuple[str, ...], otherwise: str) -> None:
    """`names`: those of the whole set so far."""
    for rule in rules or ():
        name = _checked_name(rule.name)
        if name in names:
            raise refusals.invalid_rules(f"Found rule with duplicate name '{name}'")
        names[name] = None
        if not rule.type:
            raise refusals.invalid_rules("Missing rule type")
        if rule.mode not in modes:
            raise refusals.invalid_rules(otherwise)


def _checked_name(name: str | None) -> str:
    if name is None:
        raise refusals.invalid_rules("Missing rule name")
    if not name:
        raise refusals.invalid_rules("Empty rule name")
    if not (name[0].isalpha() or name[0] == "_"):
        raise refusals.invalid_rules(f"Illegal initial character in rule name: {name}")
    if not all(char.isalnum() or char == "_" for char in name):
        raise refusals.invalid_rules(f"Illegal character in rule name: {name}")
    return name


def merged_metadata(older: Metadata | None, newer: Metadata | None) -> Metadata | None:
    """Tags and sensitive names of both; of a property that both have, the newer value."""
    if older is None or newer is None:
        return newer if older is None else older
    tags = {path: list(values) for path, values in (older.tags or {}).items()}
    for path, values in (newer.tags or {}).items():
        tags[path] = sorted(dict.fromkeys((*tags.get(path, ()), *values)))
    properties = {**(older.properties or {}), **(newer.properties or {})}
    sensitive = sorted(dict.fromkeys((*(older.sensitive or ()), *(newer.sensitive or ()))))
    return Metadata(dict(sorted(tags.items())) or None, dict(sorted(properties.items())) or None, sensitive or None)


def merged_rules(older: RuleSet | None, newer: RuleSet | None) -> RuleSet | None:
    """Of each kind the older rules, then the newer ones, which take the place of those of their name."""
    if older is None or newer is None:
        return newer if older is None else older
    return RuleSet(
        _merged(older.migration_rules, newer.migration_rules),
        _merged(older.domain_rules, newer.domain_rules),
        _merged(older.encoding_rules, newer.encoding_rules),
        newer.enable_at or older.enable_at,
    )


def _merged(older: list[Rule] | None, newer: list[Rule] | None) -> list[Rule] | None:
    names = {rule.name: None for rule in newer or ()}
    return [*(rule for rule in older or () if rule.name not in names), *(newer or ())] or None


def without(rules: RuleSet | None, names: Iterable[str]) -> RuleSet | None:
    gone = dict.fromkeys(names)

    def left(some: list[Rule] | None) -> list[Rule] | None:
        return [rule for rule in some or () if rule.name not in gone] or None

    if rules is None:
        return None
    return RuleSet(left(rules.migration_rules), left(rules.domain_rules), left(rules.encoding_rules), rules.enable_at)


def carried(sent: Carried, config: ConfigValue, latest: Carried | None) -> Carried:
    """Defaults, then what was sent, or the latest version's where nothing was, then overrides."""
    metadata, rules = sent
    if latest is not None:
        metadata = latest.metadata if metadata is None else metadata
        rules = latest.rules if rules is None else rules
    return Carried(
        merged_metadata(merged_metadata(config.default_metadata, metadata), config.override_metadata),
        merged_rules(merged_rules(config.default_rule_set, rules), config.override_rule_set),
    )


def with_version(metadata: Metadata | None, version: int) -> Metadata:
    merged = merged_metadata(metadata, Metadata(properties={VERSION_PROPERTY: str(version)}))
    assert merged is not None
    return merged


def said_version(metadata: Metadata | None) -> str | None:
    return ((metadata.properties if metadata is not None else None) or {}).get(VERSION_PROPERTY)


def without_version(metadata: Metadata | None) -> Metadata | None:
    if metadata is None or said_version(metadata) is None:
        return metadata
    left = {name: value for name, value in (metadata.properties or {}).items() if name != VERSION_PROPERTY}
    if not left and not metadata.tags and not metadata.sensitive:
        return None
    return msgspec.structs.replace(metadata, properties=left or None)
