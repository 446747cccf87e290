"""Topic patterns of the consumer protocol (KIP-848)."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from ottla.coordinator.group.draft import GroupError
from ottla.model.errors import Errors
from ottla.model.patterns import compiled


def check(pattern: str) -> None:
    """Raises GroupError with INVALID_REGULAR_EXPRESSION."""
    try:
        compiled(pattern)
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
    expressions = []
    for pattern in patterns:
        with suppress(
            ValueError
        ):  # checked when it came; one that another version took and ours does not matches nothing
            expressions.append((pattern, compiled(pattern)))
    for topic in topics:
        matching = [pattern for pattern, expression in expressions if expression.fullmatch(topic) is not None]
        if matching and may_describe(topic):
            for pattern in matching:
                found[pattern].append(topic)
    return {pattern: tuple(sorted(names)) for pattern, names in found.items()}


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a whole name matches. Raises ValueError for what is no regular expression."""
    expression = compiled(pattern)
    return lambda name: expression.fullmatch(name) is not None
