"""Random schemas of Connect and values of them, for hypothesis."""

from typing import Any

from hypothesis import strategies as st

from ottla.connect.data.java_text import as_float32
from ottla.connect.data.logical import DATE, TIME, TIMESTAMP, decimal_of, decimal_schema
from ottla.connect.data.schema import Schema, array_schema, map_schema, struct_schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type

DAY = 86_400_000
TEXT = st.text('aé\u20ac"\\\n\x1f 1', max_size=6)
NAMES = st.text("abcdefgh", min_size=1, max_size=3)
INTS = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}


def scalars() -> st.SearchStrategy[Schema]:
    plain = st.sampled_from([Schema(each) for each in Type if each.is_primitive])
    return st.one_of(plain, st.sampled_from([DATE, TIME, TIMESTAMP, decimal_schema(2)]))


def structs(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(
        lambda fields, optional: struct_schema(fields, optional=optional),
        st.dictionaries(NAMES, inner, min_size=1, max_size=4),
        st.booleans(),
    )


def schemas() -> st.SearchStrategy[Schema]:
    def deeper(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
        with_null = st.builds(lambda schema, null: schema.but(optional=null), inner, st.booleans())
        text_keys = st.builds(lambda value: map_schema(Schema(Type.STRING), value), with_null)
        int_keys = st.builds(lambda value: map_schema(Schema(Type.INT32), value), with_null)
        return st.one_of(structs(with_null), st.builds(array_schema, with_null), text_keys, int_keys)

    return st.recursive(scalars(), deeper, max_leaves=6)


def values(schema: Schema) -> st.SearchStrategy[Any]:
    plain = _values(schema)
    return st.one_of(st.none(), plain) if schema.optional else plain


def _values(schema: Schema) -> st.SearchStrategy[Any]:
    if schema == DATE.but(optional=schema.optional):
        return st.integers(-100_000, 100_000).map(lambda days: Instant(days * DAY))
    if schema == TIME.but(optional=schema.optional):
        return st.integers(0, DAY).map(Instant)
    if schema == TIMESTAMP.but(optional=schema.optional):
        return st.integers(-(1 << 50), 1 << 50).map(Instant)
    if schema.name is not None:
        return st.integers(-(1 << 70), 1 << 70).map(lambda cents: decimal_of(cents, 2))
    if schema.type in INTS:
        return st.integers(-(1 << INTS[schema.type]), (1 << INTS[schema.type]) - 1)
    if schema.type is Type.STRUCT:
        rows = st.tuples(*(values(field.schema) for field in schema.fields))
        return rows.map(lambda row: Struct.of(schema, list(row)))
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return st.lists(values(schema.value_schema), max_size=3)
    if schema.type is Type.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        return st.dictionaries(values(schema.key_schema), values(schema.value_schema), max_size=3)
    numbers = st.floats(allow_nan=False, width=64)
    return {
        Type.BOOLEAN: st.booleans(),
        Type.STRING: TEXT,
        Type.BYTES: st.binary(max_size=6),
        Type.FLOAT32: numbers.map(as_float32),
        Type.FLOAT64: numbers,
    }[schema.type]


@st.composite
def schemas_with_values(draw: st.DrawFn) -> tuple[Schema, Any]:
    schema = draw(schemas())
    return schema, draw(values(schema))


@st.composite
def rows(draw: st.DrawFn) -> tuple[Schema, Struct]:
    with_null = st.builds(lambda schema, null: schema.but(optional=null), schemas(), st.booleans())
    schema = draw(structs(with_null)).but(optional=False)
    return schema, draw(values(schema))
