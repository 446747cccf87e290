"""Filter: drops records. It is of use with a predicate."""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.transforms.base import Transform


class Filter(Transform):
    def apply(self, record: ConnectRecord) -> None:
        return None
