"""What lies in a topic as values, and values as what lies in a topic: Connect's converters, each in a file of its own.

A converter works on columns: `to_connect` is given the keys (or values) of many records of one topic and gives for each
a schema and a value or the exception that says what is wrong with it; `from_connect` the other way round. `base` is
what they have in common, `registered` what those by schemas of a registry have. `json` is three files: `json_schemas`
for the envelope's schema, `json_reading` and `json_writing` for payloads, compiled once per schema; what is written is
what Java writes, byte for byte. Avro, JSON Schema and Protobuf have a file for each direction.
"""

from typing import Final

from ottla.connect.plugins import Plugin, PluginType


def _row(class_name: str, location: str, *other_names: str) -> Plugin:
    return Plugin(class_name, PluginType.CONVERTER, f"ottla.connect.converters.{location}", other_names)


PLUGINS: Final = (
    _row("org.apache.kafka.connect.converters.BooleanConverter", "boolean:BooleanConverter"),
    _row("org.apache.kafka.connect.converters.ByteArrayConverter", "byte_array:ByteArrayConverter"),
    _row("org.apache.kafka.connect.converters.DoubleConverter", "numbers:DoubleConverter"),
    _row("org.apache.kafka.connect.converters.FloatConverter", "numbers:FloatConverter"),
    _row("org.apache.kafka.connect.converters.IntegerConverter", "numbers:IntegerConverter"),
    _row("org.apache.kafka.connect.converters.LongConverter", "numbers:LongConverter"),
    _row("org.apache.kafka.connect.converters.ShortConverter", "numbers:ShortConverter"),
    _row("org.apache.kafka.connect.json.JsonConverter", "json:JsonConverter"),
    _row("org.apache.kafka.connect.storage.StringConverter", "string:StringConverter"),
    _row("io.confluent.connect.avro.AvroConverter", "avro:AvroConverter"),
    _row("io.confluent.connect.json.JsonSchemaConverter", "json_schema:JsonSchemaConverter"),
    _row("io.confluent.connect.protobuf.ProtobufConverter", "protobuf:ProtobufConverter"),
)
