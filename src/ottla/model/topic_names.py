"""Which names a topic may have."""

import re

MAX_LENGTH = 249
"""A directory is named topic-partition and, while being deleted, carries a suffix: 255 is the file system's limit."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def why_invalid(name: str) -> str | None:
    """None for a legal name, else a sentence that says what is wrong with it."""
    if not name:
        return "the empty string is not a topic name"
    if name in (".", ".."):
        return "topic names must not be '.' or '..'"
    if len(name) > MAX_LENGTH:
        return f"the topic name is {len(name)} characters long; {MAX_LENGTH} is the limit"
    if not _LEGAL.fullmatch(name):
        return f"the topic name {name!r} may hold only ASCII letters and digits, '.', '_' and '-'"
    return None


def collides(one: str, other: str) -> bool:
    """Metric names turn '.' into '_', so two topics that differ only there would share their metrics."""
    return one.replace(".", "_") == other.replace(".", "_")
