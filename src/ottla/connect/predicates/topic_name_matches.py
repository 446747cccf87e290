"""TopicNameMatches: records of topics whose whole name matches a pattern."""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.definitions import MEDIUM, REQUIRED, STRING, AllOf, ConfigDef, ConfigKey, NonEmpty, Texts
from ottla.connect.predicates.base import Predicate
from ottla.connect.transforms.patterns import compiled, valid_pattern

MOST_TOPICS = 10_000
"""Of which is remembered whether they match."""


class TopicNameMatches(Predicate):
    CONFIG = ConfigDef(
        ConfigKey(
            "pattern",
            STRING,
            REQUIRED,
            MEDIUM,
            "A regular expression of Java's that the topic's whole name has to match.",
            AllOf((NonEmpty(), valid_pattern)),
        )
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._pattern = compiled(self.config.get_str("pattern"))
        self._known: dict[str, bool] = {}

    def test(self, record: ConnectRecord) -> bool:
        found = self._known.get(record.topic)
        if found is None:
            if len(self._known) >= MOST_TOPICS:
                self._known.clear()
            found = self._known[record.topic] = self._pattern.fullmatch(record.topic) is not None
        return found
