"""How rows lie in the keys and values of records, a file per format. `rows` tells what they have in common.

A format says which columns it can hold (`check`) and makes the serde for them (`serde`); those that use the schema
registry also tell the columns of a topic that has a schema (`inferred`). What a serde cannot read raises SerdeError
with the reason; whoever reads records skips and counts it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.serdes.base import Serde
from ottla.sql.arguments import Refused
from ottla.sql.formats import avro, delimited, json, json_sr, kafka, none, protobuf
from ottla.sql.formats.format import Format
from ottla.sql.formats.rows import Columns

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry


@dataclass(frozen=True, slots=True)
class Declared:
    check: Callable[[Format, Columns, str], None]
    serde: Callable[..., Serde[Any]]
    """Of format, columns and part; of the registry, too, if it needs one."""
    needs_registry: bool = False
    inferred: "Callable[[Format, Registry, str, str], Columns] | None" = None
    """From format, registry, topic and part to the columns that its schema has."""
    unwraps: bool = False
    """Whether WRAP_SINGLE_VALUE means something."""


FORMATS: Final[dict[str, Declared]] = {
    "NONE": Declared(none.check, none.serde),
    "KAFKA": Declared(kafka.check, kafka.serde),
    "DELIMITED": Declared(delimited.check, delimited.serde),
    "JSON": Declared(json.check, json.serde, unwraps=True),
    "JSON_SR": Declared(json_sr.check, json_sr.serde, True, json_sr.inferred, unwraps=True),
    "AVRO": Declared(avro.check, avro.serde, True, avro.inferred, unwraps=True),
    "PROTOBUF": Declared(protobuf.check, protobuf.serde, True, protobuf.inferred),
    "PROTOBUF_NOSR": Declared(protobuf.check, protobuf.plain_serde),
}


def check(format: Format, columns: Columns, part: str) -> None:
    """Whether the format can hold the columns of a key or a value. Raises Refused with what would work."""
    declared = FORMATS[format.name]
    if format.wrap is not None and part == "value" and len(columns) > 1:
        raise Refused("WRAP_SINGLE_VALUE is for a single value column: leave it out")
    if format.wrap is False and not declared.unwraps and format.name not in {"KAFKA", "DELIMITED", "NONE"}:
        raise Refused(f"{format.name} always wraps its column: leave WRAP_SINGLE_VALUE out")
    if format.delimiter is not None and format.name != "DELIMITED":
        raise Refused(f"{part.upper()}_DELIMITER is for DELIMITED, not for {format.name}")
    declared.check(format, columns, part)


def serde(format: Format, columns: Columns, part: str, registry: "Registry | None" = None) -> Serde[Any]:
    """Of a key (`part` is "key": bare if it is one column) or of a value. Raises Refused without a registry where one
    is needed."""
    declared = FORMATS[format.name]
    if part == "key" and not columns:
        return none.serde(format, columns, part)
    if not declared.needs_registry:
        return declared.serde(format, columns, part)
    if registry is None:
        raise Refused(f"{format.name} needs a schema registry: name one by ksql.schema.registry.url")
    return declared.serde(format, columns, part, registry)


def inferred(format: Format, topic: str, part: str, registry: "Registry | None") -> Columns:
    """The columns of a topic's keys or values by its schema. Raises Refused."""
    declared = FORMATS[format.name]
    if declared.inferred is None:
        raise Refused(f"{format.name} has no schema that says the columns of the {part}: declare them")
    if registry is None:
        raise Refused(f"{format.name} needs a schema registry: name one by ksql.schema.registry.url")
    return declared.inferred(format, registry, topic, part)
