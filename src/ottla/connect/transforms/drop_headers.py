"""DropHeaders: leaves out headers by name."""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.definitions import HIGH, LIST, REQUIRED, ConfigDef, ConfigKey, SomeOf, Texts
from ottla.connect.transforms.base import Transform


class DropHeaders(Transform):
    CONFIG = ConfigDef(
        ConfigKey("headers", LIST, REQUIRED, HIGH, "Names of the headers to leave out.", SomeOf(empty_allowed=False))
    )

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._names = frozenset(self.config.get_list("headers"))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if not record.headers:
            return record
        return record.with_headers(tuple(header for header in record.headers if header.key not in self._names))
