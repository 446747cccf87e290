"""Types by their names: what is known without Spark is what Spark would have read."""

import pytest
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, MapType, StringType, StructField, StructType

from ottla.pipelines.rows import HEADERS_TYPE
from ottla.pipelines.type_names import named, type_named

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("int", IntegerType()),
        ("bigint", LongType()),
        ("map<string,bigint>", MapType(StringType(), LongType())),
        (HEADERS_TYPE, ArrayType(HEADER)),
    ],
)
def test_plain_types_and_that_of_headers_need_no_parser(name: str, kind: object) -> None:
    assert named(name) == kind
    assert type_named(name) == kind


def test_other_names_are_left_to_spark() -> None:
    assert named("decimal(10, 2)") == "decimal(10, 2)"
