"""JSON in texts."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e

FUNCTIONS: Final = table(
    scalar(
        "EXTRACTJSONFIELD",
        e.extract_json_field,
        "STRING, STRING -> STRING",
        about="What is at a path such as $.a.b[0]: a text as it is, all else as JSON.",
    ),
    scalar("IS_JSON_STRING", e.is_json_string, "STRING -> BOOLEAN", about="Whether it is JSON; never null."),
    scalar(
        "JSON_ARRAY_CONTAINS",
        e.json_array_contains,
        "STRING, C -> BOOLEAN",
        about="Whether the document is an array with that item.",
    ),
    scalar("JSON_ARRAY_LENGTH", e.json_array_length, "STRING -> INT", about="How many items the array has."),
    scalar(
        "JSON_CONCAT",
        e.json_concat,
        "STRING... -> STRING",
        about="Objects made one, later fields win; anything else put into one array.",
    ),
    scalar("JSON_ITEMS", e.json_items, "STRING -> ARRAY<STRING>", about="The items of an array, each as JSON."),
    scalar("JSON_KEYS", e.json_keys, "STRING -> ARRAY<STRING>", about="The names of the fields of an object."),
    scalar("JSON_RECORDS", e.json_records, "STRING -> MAP<STRING, STRING>", about="The fields of an object, as JSON."),
    scalar("TO_JSON_STRING", e.to_json_string, "T -> STRING", about="As JSON; null is 'null'."),
)
