"""For `check_offset` of sources: whether what a person sets (PATCH …/offsets) has the shape of a position."""

from collections.abc import Mapping
from typing import Any


def text_of(partition: Mapping[str, Any], *keys: str) -> None:
    """Raises ValueError unless all of them are there, and texts."""
    for key in keys:
        if key not in partition:
            raise ValueError(f"Partition objects should contain the key '{key}'")
        if not isinstance(partition[key], str) or not partition[key]:
            raise ValueError(f"The value for the '{key}' key in the partition is expected to be a text")


def number_of(members: Mapping[str, Any], key: str, where: str = "offset") -> None:
    """Raises ValueError unless it is there, and 0 or more."""
    if key not in members:
        raise ValueError(f"{where.capitalize()} objects should either be null or contain the key '{key}'")
    found = members[key]
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"The value for the '{key}' key in the {where} is expected to be a whole number")
    if found < 0:
        raise ValueError(f"The value for the '{key}' key in the {where} should be a non-negative value")
