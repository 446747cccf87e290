"""Topics that nobody declared: what their columns are, by the registry's schemas, else by a sample of their records.

Without I/O: whoever asks has read the sample. What is found is a source like any other, with the statement that would
declare it, so that it can be kept. A guess tells how many records of the sample it is about; a field that holds
different kinds of values is a STRING, which takes them all.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.registry.lookup import UnknownSchema
from ottla.serdes.types import BINARY, BOOLEAN, DOUBLE, INT, LONG, NULL, STRING, Type, array_of
from ottla.sql.arguments import Refused
from ottla.sql.formats import FORMATS
from ottla.sql.formats.format import Format
from ottla.sql.functions.coercions import united
from ottla.sql.model import ROWKEY, SYSTEM, Columns, DataSource
from ottla.sql.types import quoted, sql_text

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

SAMPLE_RECORDS: Final = 200
"""How many of a topic's newest records are looked at."""
MAX_DEPTH: Final = 20
"""Objects within objects: what is deeper is a STRING."""
MAX_FIELDS: Final = 1_000
"""Names of an object in all records together: what has more is data, not columns, and a STRING."""
RAW: Final = "BYTES"
"""What is no format that a statement could name: values as they are."""
_FORMATS: Final = {"AVRO": "AVRO", "JSON": "JSON_SR", "PROTOBUF": "PROTOBUF"}
_WORDS: Final = 0.95
"""The part of a sample that has to be what it is taken for."""
_NONE_SEEN: Final = "none seen"

Sample = Sequence[tuple[bytes | None, bytes | None]]


@dataclass(frozen=True, slots=True)
class Undeclared:
    source: DataSource
    statement: str
    """That would declare it."""
    because: str
    """What it was told by."""
    is_told: bool = True
    """False: its values are bytes that nothing tells anything about, or there are none yet."""


def inferred(topic: str, sample: Sample, registry: "Registry | None" = None, name: str | None = None) -> Undeclared:
    """A stream of the topic's records; without a name of its own it is called as the topic. Raises
    RegistryUnavailable."""
    called = topic if name is None else name
    key_format, keys, key_reason = _part(topic, "key", [key for key, _ in sample], registry)
    value_format, values, reason = _part(topic, "value", [value for _, value in sample], registry)
    taken = {name for name, _ in values}
    keys = tuple((_free(name, taken), kind) for name, kind in keys)
    source = DataSource(called, "STREAM", topic, keys, values, key_format, value_format)
    columns = [f"{quoted(name)} {sql_text(kind)} KEY" for name, kind in keys]
    columns += [f"{quoted(name)} {sql_text(kind)}" for name, kind in values]
    formats = f"KEY_FORMAT='{key_format.name}', VALUE_FORMAT='{value_format.name}'"
    unwrapped = ", WRAP_SINGLE_VALUE=false" if value_format.wrap is False and value_format.name == "JSON" else ""
    statement = (
        f"CREATE STREAM {quoted(called)} ({', '.join(columns)}) WITH (KAFKA_TOPIC='{topic}', {formats}{unwrapped});"
    )
    if value_format.name == RAW:
        statement = f"-- no format of SQL holds the values of {topic}, which are bytes alone"
    is_told = value_format.name != RAW and reason != _NONE_SEEN
    return Undeclared(source, statement, f"keys: {key_reason}; values: {reason}", is_told)


def _free(name: str, taken: set[str]) -> str:
    return name if name not in taken else f"{name}_KEY"


def _part(
    topic: str, part: str, sample: Sequence[bytes | None], registry: "Registry | None"
) -> tuple[Format, Columns, str]:
    found = None if registry is None else _registered(topic, part, registry)
    if found is not None:
        return found
    there = [each for each in sample if each is not None]
    if not there:
        return (Format("NONE"), (), "none") if part == "key" else (Format("KAFKA"), (("VALUE", STRING),), _NONE_SEEN)
    return _key(there) if part == "key" else _value(there)


def _registered(topic: str, part: str, registry: "Registry") -> tuple[Format, Columns, str] | None:
    try:
        schema = registry.latest(f"{topic}-{part}")
    except UnknownSchema:
        return None
    format = Format(_FORMATS[schema.language])
    declared = FORMATS[format.name].inferred
    assert declared is not None
    try:
        columns = declared(format, registry, topic, part)
    except Refused:
        return None
    return format, columns, f"schema {schema.id} of the registry ({format.name})"


def _key(there: Sequence[bytes]) -> tuple[Format, Columns, str]:
    total = len(there)
    texts = [text for each in there if (text := _text(each)) is not None]
    if len(texts) >= _WORDS * total:
        return Format("KAFKA"), ((ROWKEY, STRING),), f"{len(texts)} of {total} are text"
    for length, kind in ((4, INT), (8, LONG)):
        if all(len(each) == length for each in there):
            return Format("KAFKA"), ((ROWKEY, kind),), f"all {total} have {length} bytes"
    return Format("NONE"), (), f"{total - len(texts)} of {total} are neither text nor numbers"


def _text(data: bytes) -> str | None:
    """If it could be meant as one: no control characters but those of layout."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each >= " " or each in "\t\r\n" for each in text) else None


def _value(there: Sequence[bytes]) -> tuple[Format, Columns, str]:
    total = len(there)
    documents = [found for each in there if (found := _document(each)) is not _NONE]
    objects = [each for each in documents if isinstance(each, dict)]
    if len(objects) >= _WORDS * total and 0 < len({name for each in objects for name in each}) <= MAX_FIELDS:
        return Format("JSON"), _columns(objects), f"{len(objects)} of {total} are JSON objects"
    if len(documents) >= _WORDS * total:
        kind = _known(_merged([_kind(each, 0) for each in documents]))
        return Format("JSON", wrap=False), (("VALUE", kind),), f"{len(documents)} of {total} are JSON"
    texts = sum(_text(each) is not None for each in there)
    if texts >= _WORDS * total:
        return Format("KAFKA"), (("VALUE", STRING),), f"{texts} of {total} are text"
    return Format(RAW), (("VALUE", BINARY),), f"{total - texts} of {total} are neither JSON nor text"


_NONE: Final = object()


def _document(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return _NONE


def _columns(objects: Sequence[dict[str, Any]]) -> Columns:
    """In the order in which they were first seen; in capital letters, as a name without quotes is meant."""
    names = dict.fromkeys(name for each in objects for name in each)
    alike = Counter(name.upper() for name in names)
    spelt = {name: name if alike[name.upper()] > 1 or name.upper() in SYSTEM else name.upper() for name in names}
    kinds = {spelt[name]: _merged([_kind(each[name], 0) for each in objects if name in each]) for name in names}
    return tuple((name, _known(kind)) for name, kind in kinds.items())


def _kind(value: Any, depth: int) -> Type:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return LONG if -(1 << 63) <= value < 1 << 63 else STRING
        case float():
            return DOUBLE
        case list() if depth < MAX_DEPTH:
            return array_of(_merged([_kind(each, depth + 1) for each in value]))
        case dict() if not value:
            return NULL  # an object, of which this one tells nothing
        case dict() if depth < MAX_DEPTH:
            return Type("struct", fields=tuple((name, _kind(each, depth + 1)) for name, each in value.items()))
    return STRING


def _merged(kinds: Sequence[Type]) -> Type:
    """All at once, so that it takes no longer than they are long."""
    there = [each for each in kinds if each.name != NULL.name]
    match sorted({each.name for each in there}):
        case ["struct"]:
            return _merged_structs(there)
        case ["array"]:
            return array_of(_merged([each.element for each in there if each.element is not None]))
        case names if "struct" in names or "array" in names:
            return STRING
    found = NULL
    for each in dict.fromkeys(there):
        both = united(found, each)
        found = STRING if both is None else both
    return found


def _merged_structs(kinds: Sequence[Type]) -> Type:
    parts: dict[str, list[Type]] = {}
    for each in kinds:
        for name, part in each.fields:
            parts.setdefault(name, []).append(part)
    if len(parts) > MAX_FIELDS:
        return STRING
    return Type("struct", fields=tuple((name, _merged(part)) for name, part in parts.items()))


def _known(kind: Type) -> Type:
    """What was never seen but as null is a STRING."""
    if kind == NULL:
        return STRING
    if kind.name == "struct":
        return Type("struct", fields=tuple((name, _known(part)) for name, part in kind.fields))
    return kind if kind.element is None else Type(kind.name, _known(kind.element))
