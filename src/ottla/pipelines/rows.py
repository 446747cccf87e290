"""The columns that pass between source, stages and sink."""

from typing import Final

INPUT_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
"""What a Python stage or a task is given of a record; the timestamp in milliseconds."""

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"
OUTPUT_TYPE: Final = (
    f"topic string, partition int, key binary, value binary, headers {HEADERS_TYPE}, timestamp bigint, "
    "src_partition int, src_offset bigint, seq int"
)
"""As the sink takes them."""

PACKED_ROWS: Final = "rows"
"""A frame with this binary column alone has rows for the sink packed: each cell is an Arrow stream of them. Whoever
makes rows in Python spares them the way through the JVM one by one."""
