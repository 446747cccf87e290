"""Which names a topic may have, and which of them collide."""

import re
from typing import Final

MAX_LENGTH: Final = 249
CLUSTER_METADATA: Final = "__cluster_metadata"
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+\Z")


def why_invalid(name: str) -> str | None:
    """What is wrong with a name, None if it may be used."""
    if not name:
        return "A topic name must not be empty."
    if name in (".", ".."):
        return f"A topic cannot be named '{name}'."
    if len(name) > MAX_LENGTH:
        return f"A topic name has at most {MAX_LENGTH} characters, this one has {len(name)}."
    if not _LEGAL.match(name):
        return f"'{name}' is no topic name: only ASCII letters, digits, '.', '_' and '-' are allowed."
    return None


def has_collision_chars(name: str) -> bool:
    return "." in name or "_" in name


def unified(name: str) -> str:
    """Metric names turn dots into underscores, so names that differ only there cannot live side by side."""
    return name.replace(".", "_")
