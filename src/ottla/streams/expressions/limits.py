"""What an expression may make of one record: statements of strangers run in processes that others use."""

from collections.abc import Iterable
from typing import Any, Final

LONGEST: Final = 16 << 20
"""Characters of a text, or bytes, that a function makes. What would be longer is null."""
MOST_ITEMS: Final = 1_000_000
"""Of an array that a function makes."""
MOST_STEPS: Final = 4_000_000
"""Of all lambdas inside of one call. One step is a call of one, or four characters or two items that it gives."""


class TooMuch(Exception):
    """Lambdas have taken all steps that there are. No ValueError: the call of the outermost one is null, no part."""


def within(length: int, most: int = LONGEST) -> None:
    """Raises ValueError."""
    if length > most:
        raise ValueError(f"{length:,} characters, bytes or items are more than the {most:,} that a function may make")


def joined(separator: Any, parts: Iterable[Any]) -> Any:
    """Of texts or bytes. Raises ValueError, before they are put together."""
    known = list(parts)
    within(sum(map(len, known)) + len(separator) * len(known))
    return separator.join(known)


def replaced(text: str, search: str, replacement: str) -> str:
    """Raises ValueError, before it is done. An empty text is found between all characters."""
    if (more := len(replacement) - len(search)) > 0:
        within(len(text) + more * text.count(search))
    return text.replace(search, replacement)


def cost(made: Any) -> int:
    """Of one call of a lambda."""
    match made:
        case str() | bytes():
            return 1 + (len(made) >> 2)
        case list() | dict():
            return 1 + (len(made) >> 1)
    return 1
