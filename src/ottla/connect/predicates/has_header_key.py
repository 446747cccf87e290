"""HasHeaderKey: records with a header of that name."""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.definitions import MEDIUM, REQUIRED, STRING, ConfigDef, ConfigKey, NonEmpty, Texts
from ottla.connect.predicates.base import Predicate


class HasHeaderKey(Predicate):
    CONFIG = ConfigDef(ConfigKey("name", STRING, REQUIRED, MEDIUM, "The header's name.", NonEmpty()))

    def __init__(self, given: Texts) -> None:
        super().__init__(given)
        self._name = self.config.get_str("name")

    def test(self, record: ConnectRecord) -> bool:
        return any(header.key == self._name for header in record.headers)
