"""What `ottla schemas` shows: fields of all three languages, what changed, and what is copied in which order."""

import json
from typing import Any

import pytest

from ottla.cli.app import run
from ottla.cli.schemas.comparing import changes_between, told
from ottla.cli.schemas.copying import _in_order
from ottla.cli.schemas.fields import FIELDS_OF
from ottla.cli.schemas.remote import _authorization

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "doc": "an order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]},
            },
        },
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
    ],
}


def shown(language: str, old: object, new: object) -> list[str]:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in (old, new)]
    return [told(change) for change in changes_between(language, *texts)]


def with_fields(*fields: object, **others: object) -> dict[str, Any]:
    return {**ORDER, "fields": list(fields), **others}


def test_avro_field_by_field() -> None:
    assert FIELDS_OF["AVRO"](json.dumps(ORDER)) == {
        "": {"type": "record shop.Order", "doc": '"an order"'},
        "id": {"type": "long"},
        "note": {"type": "null | string", "default": "null"},
        "price": {"type": "bytes decimal(8, 2)"},
        "lines": {"type": "array of record Line"},
        "lines[].sku": {"type": "string"},
        "state": {"type": "enum State (NEW, PAID)"},
    }


def test_changes_of_avro() -> None:
    new = json.loads(json.dumps(ORDER))
    new["fields"][0]["type"] = "string"
    new["fields"][1]["default"] = "x"
    new["fields"][3]["type"]["items"]["fields"].append({"name": "count", "type": "int", "default": 1})
    del new["fields"][2]
    assert shown("AVRO", ORDER, new) == [
        "~ id: type long → string",
        '~ note: default null → "x"',
        "- price: bytes decimal(8, 2)",
        "+ lines[].count: int, default 1",
    ]
    assert shown("AVRO", ORDER, ORDER) == shown("AVRO", '"int"', '{"type":"int"}') == []
    assert shown("AVRO", '"int"', '"long"') == ["~ the schema: type int → long"]


def test_changes_of_json_schema() -> None:
    old = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 5},
            "tags": {"type": "array", "items": {"type": "string"}},
            "address": {"$ref": "#/definitions/a"},
            "kind": {"oneOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["name"],
        "definitions": {"a": {"properties": {"city": {"type": "string"}}}},
    }
    new = json.loads(json.dumps(old))
    new["required"] = ["tags"]
    new["additionalProperties"] = False
    new["properties"]["name"]["maxLength"] = 9
    new["properties"]["tags"]["items"] = {"type": ["string", "null"]}
    new["properties"]["kind"]["oneOf"].pop()
    new["definitions"]["a"]["properties"]["zip"] = True
    assert shown("JSON", old, new) == [
        "~ the schema: additionalProperties none → false",
        "~ name: maxLength 5 → 9",
        "~ name: required yes → none",
        "~ tags: required none → yes",
        "~ tags[]: type string → string | null",
        "- kind<oneOf 1>: null",
        "+ #/definitions/a.zip: anything",
    ]
    assert shown("JSON", "true", "false") == ["~ the schema: type anything → nothing"]


PROTO = """syntax = "proto3";
package shop;

import "common.proto";

option java_package = "com.shop";

// an order
message Order {
  reserved 9 to 11;
  int64 id = 1;
  repeated string tags = 2 [
    deprecated = true,
    (own) = { a: 1; b: "}" }
  ];
  map<string, int32> counts = 3;

  oneof contact {
    string mail = 4;
    string phone = 5;
  }

  message Line {
    string sku = 1;
  }
  enum State {
    option allow_alias = true;
    NEW = 0;
    PAID = -1;
  }
}

service Orders {
  rpc Find (Order) returns (stream Order) {
    option deadline = 3;
  }
}
"""


def test_protobuf_field_by_field() -> None:
    assert FIELDS_OF["PROTOBUF"](PROTO) == {
        "": {"syntax": '"proto3"', "package": "shop", "import": '"common.proto"', "option java_package": '"com.shop"'},
        "Order": {"type": "message", "reserved": "9 to 11"},
        "Order.id": {"type": "int64", "number": "1"},
        "Order.tags": {
            "type": "repeated string",
            "number": "2",
            "options": 'deprecated = true, (own) = { a : 1 ; b : "}" }',
        },
        "Order.counts": {"type": "map<string, int32>", "number": "3"},
        "Order.mail": {"type": "string", "number": "4", "oneof": "contact"},
        "Order.phone": {"type": "string", "number": "5", "oneof": "contact"},
        "Order.Line": {"type": "message"},
        "Order.Line.sku": {"type": "string", "number": "1"},
        "Order.State": {"type": "enum", "option allow_alias": "true"},
        "Order.State.NEW": {"type": "constant", "number": "0"},
        "Order.State.PAID": {"type": "constant", "number": "-1"},
        "Orders": {"type": "service", "option deadline": "3"},
        "Orders.Find": {"type": "rpc (Order) returns (stream Order)"},
    }


def test_changes_of_protobuf() -> None:
    new = (
        PROTO.replace("int64 id = 1", "int64 order_id = 1")
        .replace("string mail = 4", "bytes mail = 4")
        .replace("PAID = -1;", "PAID = -1; GONE = 3;")
        .replace("  map<string, int32> counts = 3;\n", "")
    )
    assert shown("PROTOBUF", PROTO, new) == [
        "~ Order.id → Order.order_id (renamed)",
        "- Order.counts: map<string, int32>, number 3",
        "~ Order.mail: type string → bytes",
        "+ Order.State.GONE: constant, number 3",
    ]


def schema(subject: str, version: int, schema_id: int, *refers_to: tuple[str, int]) -> dict[str, Any]:
    references = [{"name": s, "subject": s, "version": v} for s, v in refers_to]
    return {"subject": subject, "version": version, "id": schema_id, "references": references}


def test_what_is_referred_to_is_copied_first_and_else_by_id() -> None:
    schemas = [
        schema("a", 1, 1, ("c", 1)),
        schema("b", 1, 2),
        schema("c", 1, 9, ("d", 2)),
        schema("d", 2, 12),
        schema("a", 2, 3, ("a", 2)),  # a registry never gives this, and it has to end all the same
    ]
    ordered = _in_order({(s["subject"], s["version"]): s for s in schemas})
    assert [(s["subject"], s["version"]) for s in ordered] == [("d", 2), ("c", 1), ("a", 1), ("b", 1), ("a", 2)]


@pytest.mark.parametrize(
    ("user", "password", "settings", "header"),
    [
        (None, None, {}, ""),
        ("u", "p%40", {"basic.auth.user.info": "x:y"}, "Basic dTpwQA=="),
        (None, None, {"basic.auth.user.info": "u:p@"}, "Basic dTpwQA=="),
        (None, None, {"bearer.auth.token": "t"}, "Bearer t"),
    ],
)
def test_who_asks_is_said_by_the_url_or_confluents_settings(
    user: str | None, password: str | None, settings: dict[str, str], header: str
) -> None:
    assert _authorization(user, password, settings) == header


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "-r", "ftp://x"], "'ftp://x' is no registry's address"),
        (["show"], "say which schema: SUBJECT [VERSION], or --id ID"),
        (["show", "s", "--id", "1"], "say which schema"),
        (["copy"], "--to URL is missing"),
        (["register", "s"], "FILE is missing"),
        (["check", "s", "/dev/null"], "--type AVRO, JSON or PROTOBUF is needed"),
        (["register", "s", "/dev/null", "--type", "JSON", "--reference", "x"], "NAME=SUBJECT:VERSION is expected"),
    ],
)
def test_wrong_usage_is_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schemas", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_registry_that_is_not_there_is_told_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schemas", "list", "-r", "http://u:secret@127.0.0.1:1/path"]) == 1
    shown = capsys.readouterr().err
    assert "nothing listens at http://127.0.0.1:1/path" in shown
    assert "secret" not in shown
