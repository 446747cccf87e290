"""Connect's transforms, each in a file of its own, for records with schemas and without.

`base` is what a transform is; `connect.chain` puts those of a connector together with their predicates. What several
need: `fields` has the checks and the paths of fields (KIP-821), `patterns` Java's regular expressions, `java_numbers`
Java's numbers in texts. A schema is changed once and then remembered; rows are made without checking again what was
checked before. Debezium's two are here too, as nearly everybody who reads from a database uses one of them.
"""

from typing import Final

from ottla.connect.plugins import Plugin, PluginType

_PACKAGE: Final = "org.apache.kafka.connect.transforms"
_OF_PARTS: Final = {
    "Cast": "cast",
    "ExtractField": "extract_field",
    "Flatten": "flatten",
    "HeaderFrom": "header_from",
    "HoistField": "hoist_field",
    "InsertField": "insert_field",
    "MaskField": "mask_field",
    "ReplaceField": "replace_field",
    "SetSchemaMetadata": "set_schema_metadata",
    "TimestampConverter": "timestamp_converter",
}
_OF_RECORDS: Final = {
    "DropHeaders": "drop_headers",
    "Filter": "filter",
    "InsertHeader": "insert_header",
    "RegexRouter": "regex_router",
    "TimestampRouter": "timestamp_router",
    "ValueToKey": "value_to_key",
}


def _row(class_name: str, location: str) -> Plugin:
    return Plugin(class_name, PluginType.TRANSFORMATION, f"ottla.connect.transforms.{location}")


PLUGINS: Final = (
    *(
        _row(f"{_PACKAGE}.{name}${part}", f"{module}:{name}{part}")
        for name, module in _OF_PARTS.items()
        for part in ("Key", "Value")
    ),
    *(_row(f"{_PACKAGE}.{name}", f"{module}:{name}") for name, module in _OF_RECORDS.items()),
    _row("io.debezium.transforms.ExtractNewRecordState", "extract_new_record_state:ExtractNewRecordState"),
    _row("io.debezium.transforms.outbox.EventRouter", "event_router:EventRouter"),
)
