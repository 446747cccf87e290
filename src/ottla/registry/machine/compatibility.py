"""Whether a schema may follow others: seven levels, and which versions each of them looks at."""

from collections.abc import Sequence
from typing import Final

from ottla.registry.entities import ConfigValue, Metadata
from ottla.registry.machine import refusals
from ottla.registry.machine.parsing import Parser
from ottla.registry.machine.versions import SchemaVersion
from ottla.registry.schemas.base import Budget, Difference, Policy, Schema, TooComplex

OTHER_TYPE: Final = "Incompatible because of different schema type"
CHARACTERS_PER_STEP: Final = 64
"""Of a version that is looked at: it may have to be parsed again."""


def messages(
    parser: Parser, config: ConfigValue, schema: Schema, metadata: Metadata | None, previous: Sequence[SchemaVersion]
) -> list[str]:
    """Why not; empty: it may. `previous` in the order of versions. The newest is looked at first, and the first that
    does not fit is told: Confluent's words, then what would be accepted, then under which rules."""
    level = config.compatibility_level or "NONE"
    if level == "NONE":
        return []
    compared = _of_group(config.compatibility_group, metadata, previous)
    if not level.endswith("_TRANSITIVE"):
        compared = compared[-1:]
    left = parser.budget_of_a_check()
    for version in reversed(compared):
        found = _compared(parser, level, config, schema, version, left)
        if found:
            validated = str(bool(config.validate_fields)).lower()
            return [*found, f"{{validateFields: '{validated}', compatibility: '{level}'}}"]
    return []


def _of_group(
    group: str | None, metadata: Metadata | None, previous: Sequence[SchemaVersion]
) -> Sequence[SchemaVersion]:
    """Only versions whose metadata has the same value of that property, or has none as well."""
    if group is None:
        return previous
    mine = ((metadata.properties if metadata is not None else None) or {}).get(group)
    return [each for each in previous if each.property_map.get(group) == mine]


def _compared(
    parser: Parser, level: str, config: ConfigValue, schema: Schema, version: SchemaVersion, left: Budget
) -> list[str]:
    told = [f"{{oldSchemaVersion: {version.version}}}", f"{{oldSchema: '{version.text}'}}"]
    older = parser.of_version(version)
    if older.language != schema.language:
        return [OTHER_TYPE, *told]
    policy: Policy = "LENIENT" if config.compatibility_policy == "LENIENT" else "STRICT"
    found: list[tuple[str, str]] = []

    def reading(reader: Schema, writer: Schema) -> tuple[Difference, ...]:
        budget = parser.budget()
        steps = budget.steps
        differences = reader.reading(writer, policy, budget)
        left.spend(steps - budget.steps)
        return differences

    try:
        left.spend(1 + len(version.text) // CHARACTERS_PER_STEP)
        if level.startswith(("BACKWARD", "FULL")):
            found += [(each.worded("new", "old"), each.hint) for each in reading(schema, older)]
        if level.startswith(("FORWARD", "FULL")):
            found += [(each.worded("old", "new"), each.hint) for each in reading(older, schema)]
    except TooComplex as error:
        parser.check_hurry(error)
        raise refusals.invalid_schema(
            f"Invalid schema of type {schema.language}, details: compared with version {version.version}: {error}"
        ) from None
    if not found:
        return []
    texts = dict.fromkeys(text for text, _ in found)
    hints = dict.fromkeys(f"{{hint: '{hint}'}}" for _, hint in found if hint)
    return [*texts, *told, *hints]
