"""Topics that a source writes to and that are not there yet: made as `topic.creation.*` says (KIP-158)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ottla.connect.transforms.patterns import Pattern, compiled

PREFIX: Final = "topic.creation."
DEFAULT: Final = "default"
MOST_PATTERNS: Final = 1000
"""That are kept compiled."""
_OWN: Final = ("include", "exclude", "partitions", "replication.factor")


class CreationRule(NamedTuple):
    """Of one group."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: int
    replication: int
    configs: Mapping[str, str]

    def matches(self, topic: str) -> bool:
        return _any(self.include, topic) and not _any(self.exclude, topic)


def _any(patterns: tuple[str, ...], topic: str) -> bool:
    return any(_compiled(each).fullmatch(topic) is not None for each in patterns)


@lru_cache(MOST_PATTERNS)
def _compiled(pattern: str) -> Pattern:
    return compiled(pattern)


def creation_rules(config: Mapping[str, str | None]) -> tuple[CreationRule, ...]:
    """In the order of `topic.creation.groups`, the default group last; empty: the brokers decide, as they do about what
    is not said. Raises ValueError."""
    if not any(name.startswith(PREFIX) and name != f"{PREFIX}groups" and value for name, value in config.items()):
        return ()
    named = [each.strip() for each in (config.get(f"{PREFIX}groups") or "").split(",") if each.strip()]
    usual = _rule(config, DEFAULT, None)
    return (*(_rule(config, name, usual) for name in named if name != DEFAULT), usual)


def _rule(config: Mapping[str, str | None], group: str, usual: CreationRule | None) -> CreationRule:
    prefix = f"{PREFIX}{group}."
    given = {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix) and value}
    partitions = int(given.get("partitions") or (usual.partitions if usual is not None else -1))
    replication = int(given.get("replication.factor") or (usual.replication if usual is not None else -1))
    return CreationRule(
        _patterns(given.get("include", ".*" if usual is None else "")),
        _patterns(given.get("exclude", "")),
        partitions,
        replication,
        {name: value for name, value in given.items() if name not in _OWN},
    )


def _patterns(text: str) -> tuple[str, ...]:
    found = tuple(each.strip() for each in text.split(",") if each.strip())
    for each in found:
        try:
            _compiled(each)
        except ValueError as error:
            raise ValueError(f"{each} is no regular expression: {error}") from error
    return found
