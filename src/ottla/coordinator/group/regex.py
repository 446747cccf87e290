"""Topic patterns of the consumer protocol (KIP-848), in RE2's syntax: matching takes time linear in the topic's name.

Python's own engine can be made to backtrack without end, so a pattern from the network never comes near it.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from ottla.coordinator.group.state import GroupError
from ottla.model.errors import Errors

_MEMORY_BYTES: Final = 1 << 20
"""What one compiled pattern may take: a bomb such as ((a{100}){100}){100} is refused."""


def check(pattern: str) -> None:
    """Raises GroupError with INVALID_REGULAR_EXPRESSION."""
    try:
        _compiled(pattern)
    except ValueError as error:
        raise GroupError(
            Errors.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}.",
        ) from error


def resolve(
    patterns: Sequence[str], topics: Iterable[str], may_describe: Callable[[str], bool]
) -> dict[str, tuple[str, ...]]:
    """For each pattern the topics whose whole name it matches, sorted. Meant for a thread beside the loop.

    `may_describe` is asked about matching topics only, and once about each.
    """
    found: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    compiled = []
    for pattern in patterns:
        with suppress(
            ValueError
        ):  # checked when it came; one that another version took and ours does not matches nothing
            compiled.append((pattern, _compiled(pattern)))
    for topic in topics:
        matching = [pattern for pattern, expression in compiled if expression.fullmatch(topic) is not None]
        if matching and may_describe(topic):
            for pattern in matching:
                found[pattern].append(topic)
    return {pattern: tuple(sorted(names)) for pattern, names in found.items()}


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a whole name matches. Raises ValueError for what is no regular expression."""
    compiled = _compiled(pattern)
    return lambda name: compiled.fullmatch(name) is not None


def _compiled(pattern: str) -> Any:
    """Raises ValueError."""
    import re2  # noqa: PLC0415  a native library, loaded when the first pattern comes

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error
