"""The fixture `sql` of the pytest plugin."""

from collections.abc import Callable
from typing import Any


def test_statements_run_over_records(sql: Callable[..., tuple[list[dict[str, Any]], list[dict[str, Any]]]]) -> None:
    outputs, sources = sql(
        "CREATE STREAM s (id INT KEY, v STRING) WITH (kafka_topic='t', value_format='JSON');"
        "CREATE STREAM o AS SELECT id, UCASE(v) AS v FROM s;",
        [{"topic": "t", "key": 1, "value": {"V": "a"}}],
    )
    assert outputs == [{"topic": "O", "key": 1, "value": {"V": "A"}, "timestamp": 0, "window": None, "headers": []}]
    assert [each["name"] for each in sources] == ["S", "O"]
