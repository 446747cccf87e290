"""RegexRouter: another topic, by a pattern that the whole name matches."""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.definitions import HIGH, REQUIRED, STRING, ConfigDef, ConfigKey, Texts
from ottla.connect.transforms.base import Transform
from ottla.connect.transforms.patterns import compiled, replaced_first, valid_pattern

MOST_TOPICS = 10_000
"""Whose new names are remembered."""


class RegexRouter(Transform):
    CONFIG = ConfigDef(
        ConfigKey("regex", STRING, REQUIRED, HIGH, "What the topic's whole name has to match.", valid_pattern),
        ConfigKey("replacement", STRING, REQUIRED, HIGH, "The new name; $1 is the first group of the pattern."),
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._pattern = compiled(self.config.get_str("regex"))
        self._replacement = self.config.get_str("replacement")
        self._known: dict[str, str] = {}

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        topic = self._known.get(record.topic)
        if topic is None:
            if len(self._known) >= MOST_TOPICS:
                self._known.clear()
            topic = self._known[record.topic] = self._routed(record.topic)
        return record if topic == record.topic else record.with_topic(topic)

    def _routed(self, topic: str) -> str:
        if self._pattern.fullmatch(topic) is None:
            return topic
        return replaced_first(self._pattern, topic, self._replacement)
