"""Spark's types by their names, without Spark's parser for those that are everywhere: it takes 0.2 s of a JVM that has
just started to read its first name, the driver's thread waiting for it."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

_KNOWN: Final[dict[str, DataType]] = {
    each.simpleString(): each
    for each in (
        StringType(),
        BinaryType(),
        BooleanType(),
        IntegerType(),
        LongType(),
        DoubleType(),
        MapType(StringType(), LongType()),
        ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
    )
}
"""The last one is that of headers."""


def named(name: str) -> DataType | str:
    """For casts: the name itself, where Spark has to read it."""
    return _KNOWN.get(name, name)


def type_named(name: str) -> DataType:
    """For schemas."""
    found = named(name)
    return DataType.fromDDL(found) if isinstance(found, str) else found
