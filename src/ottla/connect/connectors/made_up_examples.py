"""Examples for datagen, by the names that Confluent's has for them. The data is our own."""

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


_TIME: Final = {"range": {"min": 1_487_715_775_521, "max": 1_519_273_364_600}}
_USER: Final = {"regex": "User_[1-9]"}

EXAMPLES: Final[Mapping[str, Example]] = {
    "users": Example(
        "userid",
        _record(
            "users",
            _field("registertime", "long", **_TIME),
            _field("userid", "string", **_USER),
            _field("regionid", "string", regex="Region_[1-9]"),
            _field("gender", "string", options=["MALE", "FEMALE", "OTHER"]),
        ),
    ),
    "pageviews": Example(
        "viewtime",
        _record(
            "pageviews",
            _field("viewtime", "long", iteration={"start": 1, "step": 10}),
            _field("userid", "string", **_USER),
            _field("pageid", "string", regex="Page_[1-9][0-9]?"),
        ),
    ),
    "orders": Example(
        "orderid",
        _record(
            "orders",
            _field("ordertime", "long", **_TIME),
            _field("orderid", "int", iteration={"start": 0}),
            _field("itemid", "string", regex="Item_[1-9][0-9]{0,2}"),
            _field("orderunits", "double", range={"min": 0.1, "max": 10.0}),
            _field(
                "address",
                _record(
                    "address",
                    _field("city", "string", regex="City_[1-9][0-9]?"),
                    _field("state", "string", regex="State_[1-9][0-9]?"),
                    _field("zipcode", "long", range={"min": 10_000, "max": 99_999}),
                ),
            ),
        ),
    ),
    "stock_trades": Example(
        "symbol",
        _record(
            "StockTrade",
            _field("side", "string", options=["BUY", "SELL"]),
            _field("quantity", "int", range={"min": 1, "max": 5000}),
            _field("symbol", "string", options=["ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"]),
            _field("price", "int", range={"min": 5, "max": 1000}),
            _field("account", "string", options=["ABC123", "LMN456", "XYZ789"]),
            _field("userid", "string", **_USER),
        ),
    ),
    "ratings": Example(
        "rating_id",
        _record(
            "ratings",
            _field("rating_id", "long", iteration={"start": 1}),
            _field("user_id", "int", range={"min": 1, "max": 20}),
            _field("stars", "int", range={"min": 1, "max": 6}),
            _field("route_id", "int", range={"min": 1, "max": 10_000}),
            _field("rating_time", "long", iteration={"start": 1, "step": 12}),
            _field("channel", "string", options=["web", "ios", "android", "ios-test"]),
            _field("message", "string", options=["thank you", "why so slow?", "airport refurb looks great", "meh"]),
        ),
    ),
    "clickstream": Example(
        "ip",
        _record(
            "clickstream",
            _field("ip", "string", regex=r"1[0-9]{2}\.[1-9][0-9]\.[1-9][0-9]\.[1-9]"),
            _field("userid", "int", range={"min": 1, "max": 40}),
            _field("time", "long", iteration={"start": 1, "step": 10}),
            _field("request", "string", options=["GET /index.html", "GET /site/login.html", "POST /cart"]),
            _field("status", "string", options=["200", "302", "404", "405", "406", "407"]),
            _field("bytes", "string", options=["278", "1289", "2048", "4096", "4006", "4196", "14096"]),
            _field("agent", "string", options=["Mozilla/5.0", "curl/8.5"]),
        ),
    ),
}
