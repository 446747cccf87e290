"""What strangers say of themselves, as it may stand in a line of the log: short, and without an end of the line."""

from typing import Final

LONGEST: Final = 256
"""Room for the longest name that a topic can have."""


def cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def shown(text: str) -> str:
    """As it is, unless it would look like something else: then as Python writes it."""
    return text if text.isprintable() else repr(text)


def quoted(text: str) -> str:
    return repr(cut(text))
