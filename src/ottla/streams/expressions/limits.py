"""What an expression may make of one record: statements of strangers run in processes that others use."""

from collections.abc import Sequence
from typing import Any, Final

LONGEST: Final = 16 << 20
"""Characters of a text, or bytes, that a function makes. What would be longer is null."""
MOST_ITEMS: Final = 1_000_000
"""Of an array that a function makes."""
MOST_STEPS: Final = 4_000_000
"""Of all lambdas inside of one call. One step is a call of one, or four characters or two items that it gives."""


WEIGHTS: Final[dict[type, int]] = {str: 4, bytes: 4, list: 2, dict: 2}
"""How many characters or items are a step."""


class TooMuch(Exception):
    """Lambdas have taken all steps that there are. No ValueError: the call of the outermost one is null, no part."""


def within(length: int, most: int = LONGEST) -> None:
    """Raises ValueError."""
    if length > most:
        raise ValueError(f"{length:,} characters, bytes or items are more than the {most:,} that a function may make")


def joined(separator: Any, parts: Sequence[Any]) -> Any:
    """Of texts or bytes. Raises ValueError, before they are put together."""
    length = sum(map(len, parts)) + len(separator) * len(parts)
    if length > LONGEST:  # asked here, too: it is done for each record
        within(length)
    return separator.join(parts)


def replaced(text: str, search: str, replacement: str) -> str:
    """Raises ValueError, before it is done. An empty text is found between all characters."""
    if (more := len(replacement) - len(search)) > 0:
        within(len(text) + more * text.count(search))
    return text.replace(search, replacement)
