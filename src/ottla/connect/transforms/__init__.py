"""Connect's transforms, each in a file of its own, for records with schemas and without.

`base` is what a transform is, `chain` puts those of a connector together with their predicates and runs them over
batches: a record, none (dropped) or a failure comes out for each that goes in. What several need: `fields` has the
checks and the paths of fields (KIP-821), `patterns` Java's regular expressions. A schema is changed once and then
remembered; rows are made without checking again what was checked before.
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
)
