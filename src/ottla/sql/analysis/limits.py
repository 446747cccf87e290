"""How many values aggregates keep of a group: by properties, since ksqlDB has no argument for it."""

from collections.abc import Mapping
from typing import Final

LIMITS: Final = {
    "collect_list": "ksql.functions.collect_list.limit",
    "collect_set": "ksql.functions.collect_set.limit",
}
"""The property of each kind of aggregate that has a limit."""


def limits(given: Mapping[str, object]) -> dict[str, int]:
    """By the kind of aggregate, where something is said."""
    found = {kind: given[name] for kind, name in LIMITS.items() if name in given}
    return {kind: int(str(value)) for kind, value in found.items()}
