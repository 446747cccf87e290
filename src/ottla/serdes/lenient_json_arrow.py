"""JSON as ksqlDB reads it (`serdes.lenient_json`), a whole column of documents at a time.

Most documents are just what the schema says: Arrow's parser reads them, in a tenth of the time that Spark's takes. It
refuses a block in which one document is anything else (a number in quotes, a fraction for an integer), and where it may
have seen something else than ksqlDB does (a field in other letters, a zero with a sign) the document is doubtful: such
ones are read by the serde itself, one by one. Tests hold both together.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from ottla.serdes import dates
from ottla.serdes.arrow import arrow_type, to_column
from ottla.serdes.base import SerdeError
from ottla.serdes.columns import DecodedColumn, column_of
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.types import LONG, Type

_FEW: Final = 128
"""Documents that the serde has read before Arrow would have begun."""
_BLOCK: Final = 512
"""Documents that are read one by one because one among them is odd."""
_WHOLE: Final = frozenset(("string", "int", "long", "double", "decimal", "boolean"))
"""What Arrow reads as it is."""
_MOMENTS: Final = {
    "date": (dates.FIRST_DAY, dates.LAST_DAY),
    "time": (0, dates.DAY_MS - 1),
    "timestamp": (dates.FIRST_MS, dates.LAST_MS),
}
"""Numbers in JSON, and which there are."""
_NO_NUMBERS: Final = rb"NaN", rb"Inf"
_NO_NUMBER: Final = r"[-:,\[\s](?:NaN|Inf)"
_SIGNED_ZERO: Final = r"-0(?:[^.0-9]|$)"
"""0 to ksqlDB, for which it is an integer."""

Marks = NDArray[np.bool_]


def decoded(serde: LenientJsonSerde, data: pa.Array) -> DecodedColumn:
    """Null where the bytes are null or cannot be read."""
    if len(data) < _FEW or serde.single is not None or not is_quick(serde.content):
        return _one_by_one(serde, data)
    found = _read(serde, data)
    if found is not None:
        return found
    blocks = [data.slice(begin, _BLOCK) for begin in range(0, len(data), _BLOCK)]
    parts = [_read(serde, block) or _one_by_one(serde, block) for block in blocks]
    return DecodedColumn(*(pa.concat_arrays(column) for column in zip(*parts, strict=True)))


def is_quick(kind: Type) -> bool:
    """Whether Arrow reads such objects: not those with maps, bytes, or objects and times in lists."""
    return kind.name == "struct" and bool(kind.fields) and all(_is_quick_part(part) for _, part in kind.fields)


def _is_quick_part(kind: Type) -> bool:
    if kind.name == "array" and kind.element is not None:
        return kind.element.name in _WHOLE
    return kind.name in _WHOLE or kind.name in _MOMENTS or is_quick(kind)


# ---- one by one


def _one_by_one(serde: LenientJsonSerde, data: pa.Array) -> DecodedColumn:
    convert = to_column(serde.type)
    values: list[Any] = []
    errors: list[str | None] = [None] * len(data)
    for index, record in enumerate(data.to_pylist()):
        value = None
        try:
            value = serde.deserialize(record)
        except SerdeError as error:
            errors[index] = _encodable(str(error))
        values.append(value if value is None or convert is None else convert(value))
    try:
        column = column_of(serde.type, values)
    except UnicodeEncodeError:
        column = column_of(serde.type, _encodable(values))
    return DecodedColumn(column, pa.array(errors, pa.string()))


def _encodable(value: Any) -> Any:
    """Half of a character (a lone surrogate) is `?`, as Java writes it."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [_encodable(each) for each in value]
        case dict():
            return {_encodable(name): _encodable(each) for name, each in value.items()}
    return value


# ---- by Arrow


def _read(serde: LenientJsonSerde, data: pa.Array) -> DecodedColumn | None:
    """None where Arrow refuses a document. Those that are no object on one line, and doubtful ones, are left out and
    read one by one."""
    plain = _are_objects(data)
    if not plain.any():
        return _one_by_one(serde, data)
    documents = data if plain.all() else data.filter(pa.array(plain))
    table = _parsed(serde.content, documents)
    if table is None:
        return None
    reading = _Reading(documents)
    values = reading.struct({name: table.column(name) for name in table.schema.names}, serde.content, None)
    odd = reading.doubtful
    if plain.all() and not odd.any():
        return DecodedColumn(values, pa.nulls(len(data), pa.string()))
    slow = plain.copy()
    slow[plain] = odd
    slow |= ~plain
    return _together(values.filter(pa.array(~odd)), _one_by_one(serde, data.filter(pa.array(slow))), slow)


def _together(quick: pa.Array, slow: DecodedColumn, is_slow: Marks) -> DecodedColumn:
    """In the order of the records."""
    places = np.where(is_slow, len(quick) + np.cumsum(is_slow) - 1, np.cumsum(~is_slow) - 1)
    errors = pa.concat_arrays([pa.nulls(len(quick), pa.string()), slow.errors])
    return DecodedColumn(*(each.take(pa.array(places)) for each in (pa.concat_arrays([quick, slow.values]), errors)))


def _are_objects(data: pa.Array) -> Marks:
    """Whether a record begins and ends as an object does. With a line feed between them one document cannot be finished
    by the next, so that there are as many rows as records only if each record is one."""
    there = data.is_valid().to_numpy(zero_copy_only=False)
    _, offsets, content = data.buffers()
    cuts = np.frombuffer(offsets, np.int32)[data.offset : data.offset + len(data) + 1]
    letters = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    found: Marks = there & (cuts[1:] - cuts[:-1] >= 2)
    found[found] = (letters[cuts[:-1][found]] == ord("{")) & (letters[cuts[1:][found] - 1] == ord("}"))
    return found


def _parsed(kind: Type, documents: pa.Array) -> pa.Table | None:
    try:
        documents.cast(pa.string())  # Arrow's parser takes bytes that are no UTF-8 for text
        together = b"\n".join(documents.to_pylist())
        table = pj.read_json(
            pa.BufferReader(together),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(together) + 1),
            parse_options=pj.ParseOptions(explicit_schema=_schema(kind), unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    return table.combine_chunks() if table.num_rows == len(documents) else None


def _schema(kind: Type) -> pa.Schema:
    return pa.schema(_fields(kind))


def _fields(kind: Type) -> list[pa.Field]:
    """Each under its name, and in small letters."""
    names = {name for name, _ in kind.fields}
    return [
        pa.field(spelt, _arrow_type(part))
        for name, part in kind.fields
        for spelt in (name, _small(name, names))
        if spelt is not None
    ]


def _small(name: str, names: set[str]) -> str | None:
    """The same in small letters, unless that is another field's."""
    small = name.lower()
    return small if name == name.upper() and small not in names else None


def _arrow_type(kind: Type) -> pa.DataType:
    if kind.name == "struct":
        return pa.struct(_fields(kind))
    return arrow_type(LONG if kind.name in _MOMENTS else kind)


class _Reading:
    """What Arrow has read of documents, as columns of the types that were asked for; and which are doubtful."""

    def __init__(self, documents: pa.Array) -> None:
        self._texts = documents.cast(pa.string())
        self.doubtful: Marks = np.zeros(len(documents), np.bool_)
        letters = documents.buffers()[2]
        content = b"" if letters is None else letters.to_pybytes()
        if any(word in content for word in _NO_NUMBERS):
            self.doubtful |= _marks(pc.match_substring_regex(self._texts, _NO_NUMBER))
        if b"-0" in content:
            self.doubtful |= _marks(pc.match_substring_regex(self._texts, _SIGNED_ZERO))
        self._content, self._small = content, content.lower()

    @cached_property
    def _small_texts(self) -> pa.Array:
        return pc.ascii_lower(self._texts)

    @cached_property
    def _other_letters(self) -> Marks | None:
        """Where letters are beyond ASCII, or written by numbers: a name may be in them. None: nowhere."""
        if b"\\u" not in self._content and self._content.isascii():
            return None
        return ~_marks(pc.string_is_ascii(self._texts)) | _marks(pc.match_substring(self._texts, "\\u"))

    def _named(self, name: str) -> Marks | None:
        """Where the very name may stand. None: nowhere."""
        found = None
        for wanted in (f'"{name}"', "\\u"):
            if wanted.encode() in self._content:
                marks = _marks(pc.match_substring(self._texts, wanted))
                found = marks if found is None else found | marks
        return found

    def struct(self, columns: Mapping[str, Any], kind: Type, there: Marks | None) -> pa.Array:
        """`there`: which of them are; None: all."""
        names = {name for name, _ in kind.fields}
        parts = [self._part(self._field(columns, name, _small(name, names), there), part) for name, part in kind.fields]
        fields = [pa.field(name, arrow_type(part)) for name, part in kind.fields]
        mask = None if there is None else pa.array(~there)
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)

    def _field(self, columns: Mapping[str, Any], name: str, small: str | None, there: Marks | None) -> pa.Array:
        found = exact = _whole(columns[name])
        if small is not None and (other := _whole(columns[small])).null_count < len(other):
            found = other
            if (named := self._named(name)) is not None:  # a null that stands there counts
                self.doubtful |= _nulls(exact) & ~_nulls(other) & named
                found = pc.if_else(exact.is_valid(), exact, other)
        if found.null_count and name == name.upper():
            self._doubt_missing(name, _nulls(found) if there is None else _nulls(found) & there)
        return found

    def _doubt_missing(self, name: str, missing: Marks) -> None:
        """It may be there in other letters."""
        quoted = f'"{name.lower()}"'
        if quoted.encode() in self._small:
            self.doubtful |= missing & _marks(pc.match_substring(self._small_texts, quoted))
        if self._other_letters is not None:
            self.doubtful |= missing & self._other_letters

    def _part(self, column: pa.Array, kind: Type) -> pa.Array:
        if kind.name == "struct":
            parts = zip(column.type, column.flatten(), strict=True)
            return self.struct({field.name: part for field, part in parts}, kind, ~_nulls(column))
        if kind.name not in _MOMENTS:
            return column
        first, last = _MOMENTS[kind.name]
        within = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
        self.doubtful |= ~_marks(pc.fill_null(within, True))
        return _MAKERS[kind.name](pc.if_else(within, column, None))


def _marks(column: pa.Array) -> Marks:
    found: Marks = column.to_numpy(zero_copy_only=False)
    return found


_MAKERS: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "date": lambda days: days.cast(pa.int32()).cast(pa.date32()),
    "time": lambda ms: ms.cast(pa.int32()),
    "timestamp": lambda ms: pc.multiply(ms, 1000).cast(pa.timestamp("us")),
}


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _nulls(column: pa.Array) -> Marks:
    return _marks(column.is_null())
