"""Examples for datagen. Names of examples and fields are those that users of Confluent's know; the data is our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Example(NamedTuple):
    key: str
    schema: Mapping[str, Any]


def _field(name: str, kind: Any, **hints: Any) -> dict[str, Any]:
    return {"name": name, "type": {"type": kind, "arg.properties": hints} if hints else kind}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


_TIME: Final = {"range": {"min": 1_735_689_600_000, "max": 1_767_225_599_999}}
_USER: Final = {"regex": "user-[1-9][0-9]"}

EXAMPLES: Final[Mapping[str, Example]] = {
    "users": Example(
        "userid",
        _record(
            "users",
            _field("registertime", "long", **_TIME),
            _field("userid", "string", **_USER),
            _field("regionid", "string", options=["north", "east", "south", "west"]),
            _field("gender", "string", options=["female", "male", "diverse"]),
        ),
    ),
    "pageviews": Example(
        "viewtime",
        _record(
            "pageviews",
            _field("viewtime", "long", iteration={"start": 1_000, "step": 25}),
            _field("userid", "string", **_USER),
            _field("pageid", "string", regex="page-[1-4][0-9]"),
        ),
    ),
    "orders": Example(
        "orderid",
        _record(
            "orders",
            _field("ordertime", "long", **_TIME),
            _field("orderid", "int", iteration={"start": 1}),
            _field("itemid", "string", regex="item-[A-F][0-9]{2}"),
            _field("orderunits", "double", range={"min": 0.5, "max": 24.0}),
            _field(
                "address",
                _record(
                    "address",
                    _field("city", "string", options=["Brno", "Graz", "Turku", "Utrecht", "Bergen"]),
                    _field("state", "string", regex="district-[1-9]"),
                    _field("zipcode", "long", range={"min": 1_000, "max": 89_999}),
                ),
            ),
        ),
    ),
    "stock_trades": Example(
        "symbol",
        _record(
            "StockTrade",
            _field("side", "string", options=["BUY", "SELL"]),
            _field("quantity", "int", range={"min": 1, "max": 800}),
            _field("symbol", "string", options=["APPLE", "BIRCH", "CEDAR", "ELDER", "MAPLE", "OLIVE"]),
            _field("price", "int", range={"min": 12, "max": 640}),
            _field("account", "string", regex="account-[1-5]"),
            _field("userid", "string", **_USER),
        ),
    ),
    "ratings": Example(
        "rating_id",
        _record(
            "ratings",
            _field("rating_id", "long", iteration={"start": 100}),
            _field("user_id", "int", range={"min": 1, "max": 50}),
            _field("stars", "int", range={"min": 1, "max": 6}),
            _field("route_id", "int", range={"min": 1, "max": 300}),
            _field("rating_time", "long", iteration={"start": 1_000, "step": 40}),
            _field("channel", "string", options=["app", "desk", "mail", "phone"]),
            _field("message", "string", options=["all was well", "too late", "friendly people", "too loud"]),
        ),
    ),
    "clickstream": Example(
        "ip",
        _record(
            "clickstream",
            _field("ip", "string", regex=r"10\.[1-9][0-9]\.[1-9]\.[1-9][0-9]"),
            _field("userid", "int", range={"min": 1, "max": 60}),
            _field("time", "long", iteration={"start": 1_000, "step": 15}),
            _field("request", "string", options=["GET /", "GET /shelves", "GET /shelves/7", "POST /basket"]),
            _field("status", "string", options=["200", "201", "304", "404", "500"]),
            _field("bytes", "string", regex="[1-9][0-9]{2,4}"),
            _field("agent", "string", options=["Firefox/140", "Chrome/139", "curl/8.15"]),
        ),
    ),
}
