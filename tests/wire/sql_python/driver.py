"""PyPI's `ksql` 0.10.2 against a server: all that it has, in one conversation. What it was told is printed as JSON.

Its HTTP/2 library, hyper, asks `collections` for names that moved in Python 3.3 and are gone since 3.10, and the client
imports a module that Python 3.13 has no more. They are put back here; the client itself is as it was published.
"""

import collections.abc
import contextlib
import io
import json
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

for _name in collections.abc.__all__:
    if not hasattr(collections, _name):
        setattr(collections, _name, getattr(collections.abc, _name))
if sys.version_info >= (3, 13):
    sys.modules["telnetlib"] = types.ModuleType("telnetlib")

from ksql import KSQLAPI, utils  # type: ignore[import-untyped]  # noqa: E402  its names have to be there
from ksql.errors import KSQLError  # type: ignore[import-untyped]  # noqa: E402

EARLIEST = {"auto.offset.reset": "earliest"}


def refused(call: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"answer": call()}
    except KSQLError as error:
        return {"code": error.error_code, "message": error.msg, "trace": error.stackTrace}


def raw(lines: Iterator[str]) -> list[str]:
    """Its generator ends with an error of its own: it asks for the head behind the last line."""
    found = []
    with contextlib.suppress(RuntimeError):
        for line in lines:
            found.append(line)
    return found


def until_idle(lines: Iterator[Any]) -> list[Any]:
    """It says so when it has waited for long enough."""
    with contextlib.redirect_stdout(io.StringIO()):
        return list(lines)


def followed(client: Any, query: str) -> dict[str, Any]:
    """A push query over HTTP/2 that is closed by its id, and ends."""
    lines = client.query(query, stream_properties=EARLIEST, use_http2=True)
    head = json.loads(next(lines))
    first = json.loads(next(lines).splitlines()[0])
    closed = client.close_query(head["queryId"])
    return {"columns": head["columnNames"], "first": first, "closed": closed, "rest": "".join(lines)}


def conversation(url: str, name: str) -> dict[str, Any]:
    client = KSQLAPI(url, timeout=120)
    made = client.ksql(
        f"CREATE STREAM {name} (ID INT KEY, ITEM STRING) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, FORMAT='JSON')"
    )
    rows = f"SELECT ID, ITEM FROM {name}"
    push = f"{rows} EMIT CHANGES LIMIT 2"
    return {
        "version": client.get_ksql_version(),
        "properties": [each["name"] for each in client.get_properties()],
        "made": made[0]["commandStatus"]["status"],
        "stream": client.create_stream(f"{name}_MORE", ["ID INT KEY", "ITEM STRING"], name, "JSON"),
        "again": refused(lambda: client.create_stream(f"{name}_MORE", ["ID INT"], name, "JSON")),
        "table": refused(lambda: client.create_table(f"{name}_T", ["ID INT PRIMARY KEY"], name, "JSON", "ID")),
        "inserted": client.inserts_stream(name, [{"ID": 1, "ITEM": "tea"}, {"ID": 2, "ITEM": "milk"}]),
        "not inserted": client.inserts_stream(name, [{"ID": "x"}]),
        "nowhere": client.inserts_stream(f"{name}_NOT", [{"ID": 1}])[0]["error_code"],
        "pushed": raw(client.query(push, stream_properties=EARLIEST)),
        "objects": list(client.query(push, stream_properties=EARLIEST, return_objects=True)),
        "idle": until_idle(client.query(f"{rows} EMIT CHANGES", idle_timeout=0.5, return_objects=True)),
        "wrong": refused(lambda: list(client.query(f"SELECT X FROM {name} EMIT CHANGES"))),
        "pushed by 2": "".join(client.query(push, stream_properties=EARLIEST, use_http2=True)).splitlines()[1:],
        "pulled by 2": "".join(client.query(f"{rows}", use_http2=True)).splitlines()[1:],
        "followed": followed(client, f"{rows} EMIT CHANGES"),
        "not closed": client.close_query("nobody"),
        "stream as": client.create_stream_as(f"{name}_TEA", ["ID", "ITEM"], name, conditions='ITEM = "tea"'),
        "keyed as": client.create_stream_as(
            f"{name}_BY",
            ["ITEM", "ID"],
            name,
            kafka_topic=f"{name}_by",
            value_format="DELIMITED",
            partition_by="ITEM",
            partitions=2,
        ),
        "streams": sorted(utils.get_all_streams(client, prefix=name)),
        "dropped": client.ksql(f"DROP STREAM {name}_TEA DELETE TOPIC")[0]["commandStatus"]["status"],
    }


if __name__ == "__main__":
    print(json.dumps(conversation(sys.argv[1], sys.argv[2])))
