"""The columns that pass between source, stages and sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

INPUT_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
"""What a Python stage or a task is given of a record; the timestamp in milliseconds."""

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"
OUTPUT_TYPE: Final = (
    f"topic string, partition int, key binary, value binary, headers {HEADERS_TYPE}, timestamp bigint, "
    "src_partition int, src_offset bigint, seq int"
)
"""As the sink takes them."""


def without_null_headers(column: Column) -> Column:
    """For rows on their way to a Python process. Spark looks at the size of its Arrow batch before each row, and Arrow
    then goes through all lists since the last one that was not null: with null headers, which are the rule, a batch
    takes time by the square of its rows (ten thousand of them half a second)."""
    from pyspark.sql import functions as F  # noqa: PLC0415  who only wants the names needs no Spark

    from ottla.pipelines.type_names import named  # noqa: PLC0415

    return F.coalesce(column, F.array().cast(named(HEADERS_TYPE))).alias("headers")


def have_no_headers(column: pa.Array) -> bool:
    """None of them: null and the empty list mean the same."""
    return column.null_count == len(column) or not len(column.flatten())


def headers_of(column: pa.Array) -> Sequence[tuple[tuple[str, bytes | None], ...]]:
    """Of each record."""
    if have_no_headers(column):
        return [()] * len(column)
    return [
        tuple((header["key"], header["value"]) for header in headers) if headers else ()
        for headers in column.to_pylist()
    ]
