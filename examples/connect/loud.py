"""A transform: texts in capitals, for any connector.

ottla connect run examples/connect/loud.json
"""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.transforms.base import Transform


class Loud(Transform):
    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if not isinstance(record.value, str):
            return record
        return record.with_value(record.value_schema, record.value.upper())
