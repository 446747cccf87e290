"""The values of `topology.optimization`: none, all, or some of Kafka's rules with commas between them."""

from typing import Final

REUSE_SOURCES: Final = "reuse.ktable.source.topics"
MERGE_REPARTITIONS: Final = "merge.repartition.topics"
SINGLE_STORE_SELF_JOIN: Final = "single.store.self.join"
RULES: Final = (REUSE_SOURCES, MERGE_REPARTITIONS, SINGLE_STORE_SELF_JOIN)


def rules_of(text: str) -> tuple[str, ...]:
    """Raises ValueError for what is no rule."""
    said = [part.strip() for part in text.split(",")]
    if said == ["none"]:
        return ()
    if said == ["all"]:
        return RULES
    unknown = [part for part in said if part not in RULES]
    if unknown:
        raise ValueError(f"none, all, or some of {', '.join(RULES)} are expected, not {', '.join(map(repr, unknown))}")
    return tuple(rule for rule in RULES if rule in said)
