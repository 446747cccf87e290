"""TimestampRouter: a topic for each day, or whatever the pattern tells apart."""

from ottla.connect.data.date_format import DateFormat
from ottla.connect.data.errors import DataException
from ottla.connect.data.record import ConnectRecord
from ottla.connect.definitions import HIGH, STRING, ConfigDef, ConfigError, ConfigKey, Texts
from ottla.connect.transforms.base import Transform


class TimestampRouter(Transform):
    CONFIG = ConfigDef(
        ConfigKey(
            "topic.format",
            STRING,
            "${topic}-${timestamp}",
            HIGH,
            "The new name, in which ${topic} is the old one and ${timestamp} the record's time.",
        ),
        ConfigKey(
            "timestamp.format",
            STRING,
            "yyyyMMdd",
            HIGH,
            "How the time is written, in the letters of Java's SimpleDateFormat and in UTC.",
        ),
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._topic = self.config.get_str("topic.format")
        pattern = self.config.get_str("timestamp.format")
        try:
            self._format = DateFormat(pattern)
        except ValueError as error:
            raise ConfigError.of("timestamp.format", pattern, str(error)) from error

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.timestamp is None:
            raise DataException(f"Timestamp missing on record: {record}")
        named = self._topic.replace("${topic}", record.topic)
        return record.with_topic(named.replace("${timestamp}", self._format.format(record.timestamp)))
