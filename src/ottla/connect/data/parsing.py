"""Texts as values, with the schema that suits them: how a header's bytes become a value (Java's `Values.parseString`).

Whatever cannot be read as something better is the string it is; only inside of arrays and maps is that a failure, and
then the whole text is a string.
"""

from decimal import Decimal
from typing import Any, Final

from ottla.connect.data.date_format import DateFormat
from ottla.connect.data.errors import DataException, NumberFormatException
from ottla.connect.data.logical import DATE, TIME, TIMESTAMP, decimal_schema, scale_of
from ottla.connect.data.record import NOTHING, SchemaAndValue
from ottla.connect.data.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    array_schema,
    map_schema,
)
from ottla.connect.data.types import BITS, Instant, Type
from ottla.connect.data.values import (
    DATE_ONLY_FORMAT,
    TIME_FORMAT,
    TIMESTAMP_FORMAT,
    big_decimal,
    convert_number,
    is_number,
    number_to_float,
    to_text,
)

_DELIMITERS: Final = frozenset(':,{}[]"')
_TEMPORAL: Final[dict[int, tuple[Schema, DateFormat]]] = {
    13: (TIME, TIME_FORMAT),
    24: (TIMESTAMP, TIMESTAMP_FORMAT),
    10: (DATE, DATE_ONLY_FORMAT),
}
_INTEGRAL: Final = ((8, INT8), (16, INT16), (32, INT32), (64, INT64))
_WIDTHS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
_BLANKS: Final = "".join(map(chr, range(33)))
MOST_DEPTH: Final = 200
"""Of arrays and maps in each other: a text that goes deeper is a string."""


def parse_text(text: str | None) -> SchemaAndValue:
    """Raises DataException for a text that ends in the middle of what it began with a quote or a bracket, as Java."""
    if text is None:
        return NOTHING
    if not text:
        return SchemaAndValue(STRING, text)
    return _Reader(text).parse(0) or NOTHING


class _Reader:
    __slots__ = ("_next", "_place", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._next: str | None = None

    # ---- tokens

    def _mark(self) -> int:
        return self._place - (len(self._next) if self._next is not None else 0)

    def _rewind(self, place: int) -> None:
        self._place = place
        self._next = None

    def _more(self) -> bool:
        return self._next is not None or self._place < len(self._text)

    def _token(self) -> str:
        if self._next is not None:
            token, self._next = self._next, None
            return token
        return self._scan()

    def _scan(self) -> str:
        text, start, place, escaped = self._text, self._place, self._place, False
        while place < len(text):
            char = text[place]
            if char == "\\":
                escaped = not escaped
            elif char in _DELIMITERS and not escaped:
                self._place = place + 1 if place == start else place
                return text[start : self._place]
            else:
                escaped = False
            place += 1
        self._place = place
        return text[start:]

    def _consume(self, expected: str) -> bool:
        if self._next is None:
            if not self._more():
                return False
            self._next = self._scan()
        while not self._next.strip() and self._place < len(self._text):
            self._next = self._scan()
        if self._next.strip(_BLANKS) != expected:
            return False
        self._next = None
        return True

    def _literal(self, embedded: bool, word: str) -> bool:
        start = self._mark()
        if self._consume(word) and (embedded or not self._more()):
            return True
        self._rewind(start)
        return False

    # ---- values

    def parse(self, depth: int) -> SchemaAndValue | None:
        embedded = depth > 0
        if not self._more():
            return None
        if embedded and self._consume('"'):
            return self._quoted()
        if self._literal(embedded, "null"):
            return None
        for word, value in (("true", True), ("false", False)):
            if self._literal(embedded, word):
                return SchemaAndValue(BOOLEAN, value)
        start = self._mark()
        try:
            if self._consume("["):
                return self._array(depth + 1)
            if self._consume("{"):
                return self._map(depth + 1)
        except DataException:
            self._rewind(start)
        token = self._token()
        if not token.strip():
            return SchemaAndValue(STRING, token)
        return self._single(embedded, token.strip(_BLANKS))

    def _single(self, embedded: bool, token: str) -> SchemaAndValue:
        if token[0].isdigit():
            found = self._temporal_of_tokens(token)
            if found is not None:
                return found
        if token[0].isdigit() or token[0] in "+-":
            try:
                return _number(token)
            except NumberFormatException:
                pass
        if embedded:
            raise DataException("Failed to parse embedded value")
        return SchemaAndValue(STRING, self._text)

    def _temporal_of_tokens(self, token: str) -> SchemaAndValue | None:
        """A time has colons, which end tokens: it is five of them."""
        start = self._mark()
        for _ in range(4):
            if not self._more():
                break
            self._token()
        else:
            found = _temporal(token + self._text[start : self._place])
            if found is not None:
                return found
        self._rewind(start)
        return _temporal(token)

    def _quoted(self) -> SchemaAndValue:
        content = ""
        while self._more():
            if self._consume('"'):
                break
            content += self._token()
        return _temporal(content) or SchemaAndValue(STRING, content)

    def _array(self, depth: int) -> SchemaAndValue:
        _bounded(depth)
        found: list[Any] = []
        common = _Common()
        while self._more():
            if self._consume("]"):
                if common.schema is None:
                    return SchemaAndValue(array_schema(None), found)
                inner = common.schema
                return SchemaAndValue(array_schema(inner), [_aligned(inner, each) for each in found])
            if self._consume(","):
                raise DataException(f"Unable to parse an empty array element: {self._text}")
            element = self.parse(depth)
            common.merge(element)
            found.append(None if element is None else element.value)
            place = self._mark()
            if self._consume("]"):
                self._rewind(place)
            elif not self._consume(","):
                raise DataException("Array elements missing ',' delimiter")
        raise DataException(f"Array is missing terminating ']': {self._text}")

    def _map(self, depth: int) -> SchemaAndValue:
        _bounded(depth)
        found: list[tuple[Any, Any]] = []
        keys, values = _Common(), _Common()
        while self._more():
            if self._consume("}"):
                return _map_of(found, keys.schema, values.schema)
            if self._consume(","):
                raise DataException(f"Unable to parse a map entry with no key or value: {self._text}")
            key = self.parse(depth)
            if key is None or key.value is None:
                raise DataException(f"Map entry may not have a null key: {self._text}")
            if not self._consume(":"):
                raise DataException(f"Map entry is missing ':' at {self._place} in {self._text}")
            value = self.parse(depth)
            found.append((key.value, None if value is None else value.value))
            self._consume(",")
            keys.merge(key)
            values.merge(value)
        raise DataException(f"Map is missing terminating '}}': {self._text}")


def _bounded(depth: int) -> None:
    if depth > MOST_DEPTH:
        raise DataException(f"Arrays and maps more than {MOST_DEPTH} deep")


def _map_of(found: list[tuple[Any, Any]], keys: Schema | None, values: Schema | None) -> SchemaAndValue:
    if keys is None:
        return SchemaAndValue(map_schema(None, None), _dict_of(found))
    aligned = [(_aligned(keys, k), v if values is None else _aligned(values, v)) for k, v in found]
    return SchemaAndValue(map_schema(keys, values), _dict_of(aligned))


def _dict_of(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    try:
        return dict(pairs)
    except TypeError as error:  # a list or a map as a key: Java has such, Python does not
        raise DataException("Map entry may not have a list or a map as key") from error


def _temporal(token: str) -> SchemaAndValue | None:
    token = token.replace("\\:", ":")
    if len(token) not in _TEMPORAL:
        return None
    schema, form = _TEMPORAL[len(token)]
    millis = form.parse(token)
    return None if millis is None else SchemaAndValue(schema, Instant(millis))


def _number(token: str) -> SchemaAndValue:
    decimal = big_decimal(token)
    exact = _exact(decimal)
    if exact is not None:
        return exact
    scale = scale_of(decimal)
    for schema, single in ((FLOAT32, True), (FLOAT64, False)):
        value = number_to_float(decimal, single=single)
        if scale != 0 and value not in (float("inf"), float("-inf")):
            return SchemaAndValue(schema, value)
    return SchemaAndValue(decimal_schema(scale), decimal)


def _exact(decimal: Decimal) -> SchemaAndValue | None:
    size = abs(decimal)
    if size > Decimal("1e19") or (size < 1 and size != 0) or decimal != decimal.to_integral_value():
        return None
    whole = int(decimal)
    for bits, schema in _INTEGRAL:
        if -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
            return SchemaAndValue(schema, whole)
    return None


class _Common:
    """The schema that all values so far can have."""

    __slots__ = ("_compatible", "schema")

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._compatible = True

    def merge(self, latest: SchemaAndValue | None) -> None:
        if latest is None or latest.schema is None or not self._compatible:
            return
        self.schema = latest.schema if self.schema is None else _merged(self.schema, latest.schema)
        self._compatible = self.schema is not None


def _merged(previous: Schema, latest: Schema) -> Schema | None:
    if previous.type is not latest.type:
        if previous.type not in _WIDTHS or latest.type not in _WIDTHS:
            return None
        return max(previous, latest, key=lambda each: _WIDTHS.index(each.type))
    if previous.optional == latest.optional:
        return previous if previous.optional else latest
    return previous if previous == latest else None


def _aligned(schema: Schema, value: Any) -> Any:
    """Values.convertTo, as far as what was parsed can need it."""
    if value is None:
        if schema.optional:
            return None
        raise DataException("Unable to convert a null value to a schema that requires a value")
    if schema.name is not None:
        if schema.type is Type.BYTES and is_number(value) and not isinstance(value, Decimal):
            return Decimal(repr(float(value)))
        return value
    if schema.type in BITS or schema.type in (Type.FLOAT32, Type.FLOAT64):
        return convert_number(value, schema.type)
    if schema.type is Type.STRING:
        return to_text(value)
    return value
