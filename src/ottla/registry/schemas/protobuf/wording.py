"""What is said of a change that a reader cannot cope with: Confluent's words, with ours after them."""

from typing import Final

_TEXTS: Final = {
    "PACKAGE_CHANGED": "The package at '{path}' in the %s schema does not match the package in the %s schema",
    "MESSAGE_REMOVED": "The %s schema is missing a MESSAGE type at path '{path}' in the %s schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the %s schema does not match the %s schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{path}' in the %s schema does not match "
    "its kind in the %s schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{path}' in the %s schema does not match "
    "its type in the %s schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{path}' in the %s schema does not "
    "match its label in the %s schema",
    "REQUIRED_FIELD_ADDED": "A required field  at path '{path}' in the %s schema is missing in the %s schema",
    "REQUIRED_FIELD_REMOVED": "The %s schema is missing a required field at path: '{path}' in the %s schema",
    "ONEOF_FIELD_REMOVED": "The %s schema is missing a oneof field at path '{path}' in the %s schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{path}' in the %s schema are "
    "outside a oneof in the %s schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{path}' in the %s schema is outside an "
    "existing oneof in the %s schema",
}
"""Theirs, two blanks included: people match on them. %s is «new» or «old»: first the reader, then the writer."""

_HINTS: Final = {
    "PACKAGE_CHANGED": "Keep the package; messages of another package belong to another subject",
    "MESSAGE_REMOVED": "Keep the message, if need be empty: records may hold its index",
    "FIELD_KIND_CHANGED": "Reserve the number and give a field of the new type a number of its own",
    "FIELD_SCALAR_KIND_CHANGED": "Types may change only inside a group: int32, int64, uint32, uint64, bool and enums; "
    "sint32 and sint64; fixed32 and sfixed32; fixed64 and sfixed64; string and bytes. For any other type take a new "
    "number",
    "FIELD_NAMED_TYPE_CHANGED": "Keep the message type of this field, or give a field of the other type a new number",
    "FIELD_NUMERIC_LABEL_CHANGED": "Keep the label of a number; only string, bytes and message fields may change it",
    "REQUIRED_FIELD_ADDED": "Make it optional: records that are written already do not have it",
    "REQUIRED_FIELD_REMOVED": "Keep it: readers of the other schema refuse a record without it",
    "ONEOF_FIELD_REMOVED": "Keep the member, or remove the oneof with all of its members",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Move one field at most: a record may have both, and would lose one",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "Leave the field outside: a record may have it beside a member of that oneof",
}

INCOMPATIBLE: Final = frozenset(_TEXTS)


def text_of(code: str, path: str) -> str:
    said = _TEXTS[code].format(path=path)
    return f'{{errorType:"{code}", description:"{said}"}}'


def hint_of(code: str) -> str:
    return _HINTS[code]
