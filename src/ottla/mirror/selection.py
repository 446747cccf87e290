"""Which topics, groups and settings of topics are mirrored: lists of names and regular expressions.

A pattern has to match the whole name, as in Java. Patterns are RE2's (`model.patterns`): they come from configuration
that is posted over HTTP, and Python's engine can be made to backtrack without end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.mirror.policy import Policy
from ottla.model.patterns import compiled

TOPICS_EXCLUDED: Final = r"mm2.*\.internal, .*\.replica, __.*"
GROUPS_EXCLUDED: Final = "console-consumer-.*, connect-.*, __.*"
SETTINGS_EXCLUDED: Final = (
    "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
    "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, log.message.timestamp.after.max.ms, "
    "message.timestamp.type, unclean.leader.election.enable, min.insync.replicas"
)


class Names:
    """Names that are in one list of patterns and not in another."""

    __slots__ = ("_excluded", "_included")

    def __init__(self, included: str, excluded: str) -> None:
        self._included = _any_of(included)
        self._excluded = _any_of(excluded)

    def __contains__(self, name: str) -> bool:
        return _matches(self._included, name) and not _matches(self._excluded, name)


def topics_of(config: Mapping[str, str]) -> Names:
    return Names(config.get("topics", ".*"), config.get("topics.exclude", TOPICS_EXCLUDED))


def groups_of(config: Mapping[str, str]) -> Names:
    return Names(config.get("groups", ".*"), config.get("groups.exclude", GROUPS_EXCLUDED))


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Which settings of a topic are copied, and whose default counts where a topic has none of its own."""

    names: Names
    defaults_from_source: bool

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "TopicSettings":
        excluded = config.get("config.properties.exclude", SETTINGS_EXCLUDED)
        return cls(Names(".*", excluded), config.get("use.defaults.from", "target") == "source")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which topics of the source a flow copies: what the lists say, and never its own topics or one that would come
    back to where it was."""

    policy: Policy
    topics: Names
    target: str
    heartbeats: bool
    """Heartbeats of the source are copied though no list names them: by them the age of a flow is seen."""

    def __contains__(self, topic: str) -> bool:
        wanted = topic in self.topics or (self.heartbeats and self.policy.is_heartbeats(topic))
        return wanted and not self.policy.is_internal(topic) and not self.policy.is_cycle(topic, self.target)

    def of(self, topics: Iterable[str]) -> list[str]:
        return sorted(topic for topic in topics if topic in self)


def _any_of(patterns: str) -> Any:
    """None for an empty list, which stands for no name: the empty pattern would match every one."""
    listed = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    return compiled("|".join(f"(?:{pattern})" for pattern in listed)) if listed else None


def _matches(pattern: Any, name: str) -> bool:
    return pattern is not None and pattern.fullmatch(name) is not None
