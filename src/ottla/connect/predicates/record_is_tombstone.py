"""RecordIsTombstone: records without a value."""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.predicates.base import Predicate


class RecordIsTombstone(Predicate):
    def test(self, record: ConnectRecord) -> bool:
        return record.value is None
