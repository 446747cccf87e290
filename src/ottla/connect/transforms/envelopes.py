"""What a change of Debezium's is known by."""

from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import Schema


def is_envelope(schema: Schema | None) -> bool:
    """By the name of its schema."""
    return schema is not None and schema.name is not None and schema.name.endswith(".Envelope")


def is_schemaless_envelope(record: ConnectRecord) -> bool:
    """By its fields: what changed, where, and the row before or after."""
    value = record.value
    return (
        record.value_schema is None
        and type(value) is dict
        and value.get("op") in ("c", "u", "d", "r", "t")
        and "source" in value
        and ("after" in value or "before" in value)
    )
