"""A schema as people think of it: its fields, each with its path and what is said of it, whatever the language."""

from collections.abc import Callable
from typing import Final

from ottla.cli.schemas.fields.avro import avro_fields
from ottla.cli.schemas.fields.json_schema import json_schema_fields
from ottla.cli.schemas.fields.protobuf import protobuf_fields

Fields = dict[str, dict[str, str]]
"""What is said by its name ("type", "default", "doc"), by the path of a field; "" is the schema as a whole."""

FIELDS_OF: Final[dict[str, Callable[[str], Fields]]] = {
    "AVRO": avro_fields,
    "JSON": json_schema_fields,
    "PROTOBUF": protobuf_fields,
}
