"""InsertHeader: one more header, with a fixed value."""

from ottla.connect.data.parsing import parse_text
from ottla.connect.data.record import ConnectRecord, Header
from ottla.connect.definitions import HIGH, REQUIRED, STRING, ConfigDef, ConfigKey, NotNull, Texts
from ottla.connect.transforms.base import Transform


class InsertHeader(Transform):
    CONFIG = ConfigDef(
        ConfigKey("header", STRING, REQUIRED, HIGH, "The header's name.", NotNull()),
        ConfigKey(
            "value.literal",
            STRING,
            REQUIRED,
            HIGH,
            "The value that every record is given: a number, true or false, a date, a list, or else a text.",
            NotNull(),
        ),
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._header = Header(self.config.get_str("header"), *parse_text(self.config.get_str("value.literal")))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record.with_headers((*record.headers, self._header))
