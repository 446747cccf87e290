"""Cases of Debezium's own transforms: unwrapping of change events, and routing of an outbox."""

from typing import Any

from tests.oracle.connect.tables import enveloped, field, plain, record

UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
ROUTER = "io.debezium.transforms.outbox.EventRouter"

LABELS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
SOURCE = {
    "type": "struct",
    "optional": False,
    "name": "io.debezium.connector.postgresql.Source",
    "version": 1,
    "fields": [
        field("version", "string"),
        field("connector", "string"),
        field("name", "string"),
        field("ts_ms", "int64"),
        field("snapshot", "string", optional=True, default="false", name="io.debezium.data.Enum", version=1,
              parameters={"allowed": LABELS}),
        field("db", "string"),
        field("schema", "string"),
        field("table", "string"),
        field("txId", "int64", optional=True),
        field("lsn", "int64", optional=True),
    ],
}  # fmt: skip
BLOCK = {
    "type": "struct",
    "optional": True,
    "name": "event.block",
    "version": 1,
    "fields": [field("id", "string"), field("total_order", "int64"), field("data_collection_order", "int64")],
}
TOLD: dict[str, Any] = {
    "version": "3.4.0.Final", "connector": "postgresql", "name": "p", "ts_ms": 5, "snapshot": "false", "db": "d",
    "schema": "public", "table": "orders", "txId": 7, "lsn": None,
}  # fmt: skip


def row_schema(fields: list[dict[str, Any]], table: str = "orders") -> dict[str, Any]:
    return {"type": "struct", "optional": True, "name": f"p.public.{table}.Value", "fields": fields}


def envelope(
    fields: list[dict[str, Any]], op: str, before: Any, after: Any, *, transaction: Any = None, table: str = "orders"
) -> str:
    row = row_schema(fields, table)
    schema = {
        "type": "struct",
        "optional": False,
        "name": f"p.public.{table}.Envelope",
        "version": 2,
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            {**SOURCE, "field": "source"},
            {**BLOCK, "field": "transaction"},
            field("op", "string"),
            field("ts_ms", "int64", optional=True),
        ],
    }
    payload = {
        "before": before, "after": after, "source": TOLD, "transaction": transaction, "op": op, "ts_ms": 1709205753123,
    }  # fmt: skip
    return enveloped(schema, payload)


ROW = [
    field("id", "int32"),
    field("name", "string", optional=True, default="nobody"),
    field("where", "string", optional=True),
    field("price", "double", optional=True),
]
FULL = {"id": 1, "name": "n", "where": "elsewhere", "price": 1.5}
SPARSE = {"id": 2, "name": None, "where": " ", "price": None}
BLOCKED = {"id": "7:1", "total_order": 1, "data_collection_order": 1}
HEARTBEAT = enveloped(
    {
        "type": "struct", "optional": False, "name": "io.debezium.connector.common.Heartbeat",
        "fields": [field("ts_ms", "int64")],
    },
    {"ts_ms": 1},
)  # fmt: skip
CHANGES: dict[str, str | None] = {
    "create": envelope(ROW, "c", None, FULL),
    "read": envelope(ROW, "r", None, SPARSE),
    "update": envelope(ROW, "u", FULL, SPARSE, transaction=BLOCKED),
    "delete": envelope(ROW, "d", FULL, None),
    "delete of little": envelope(ROW, "d", SPARSE, None, transaction=BLOCKED),
    "truncate": envelope(ROW, "t", None, None),
    "tombstone": None,
    "heartbeat": HEARTBEAT,
    "no envelope": enveloped(row_schema(ROW), FULL),
    "text": plain("string", "text"),
    "schemaless": enveloped(None, {"a": 1}),
}
KEY = enveloped(
    {"type": "struct", "optional": False, "name": "p.public.orders.Key", 
        "fields": [field("id", "int32"), field("where", "string", optional=True)],
    },
    {"id": 1, "where": "w"},
)  # fmt: skip
DROPS = [
    "drops",
    enveloped(
        {"type": "array", "optional": False, "items": {"type": "string", "optional": False}}, ["where", "id", "absent"]
    ),
]


def stage(named: str, **config: str) -> Any:
    return {"class": named, "config": {key.replace("_", "."): value for key, value in config.items()}, "negate": False}


UNWRAPS: list[Any] = [
    stage(UNWRAP),
    *(
        stage(UNWRAP, delete_tombstone_handling_mode=mode)
        for mode in ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone", "none", "Rewrite")
    ),
    stage(UNWRAP, add_fields="op,table,lsn,source.ts_ms,ts_ms,transaction.id,total_order"),
    stage(UNWRAP, add_fields="op:OPERATION,source.db:base,snapshot", add_fields_prefix="x."),
    stage(UNWRAP, add_fields="absent,source.absent"),
    stage(UNWRAP, add_fields="nothing.absent"),
    stage(UNWRAP, add_fields="a:b:c"),
    stage(
        UNWRAP,
        add_headers="op,table,source.lsn,transaction.id",
        delete_tombstone_handling_mode="rewrite-with-tombstone",
    ),
    stage(UNWRAP, add_headers="op:o,txId", add_headers_prefix=""),
    stage(UNWRAP, add_fields="op", delete_tombstone_handling_mode="rewrite"),
    stage(UNWRAP, add_fields="op", delete_tombstone_handling_mode="rewrite", replace_null_with_default="false"),
    stage(UNWRAP, route_by_field="where"),
    stage(UNWRAP, route_by_field="where", delete_tombstone_handling_mode="rewrite"),
    stage(UNWRAP, route_by_field="id"),
    stage(UNWRAP, route_by_field="absent"),
    stage(UNWRAP, drop_fields_header_name="drops"),
    stage(UNWRAP, drop_fields_header_name="drops", drop_fields_from_key="true"),
    stage(
        UNWRAP, drop_fields_header_name="drops", drop_fields_from_key="true", drop_fields_keep_schema_compatible="false"
    ),
    stage(UNWRAP, drop_fields_header_name="other"),
]

OUTBOX = [
    field("id", "string", name="io.debezium.data.Uuid", version=1),
    field("aggregatetype", "string"),
    field("aggregateid", "string"),
    field("type", "string"),
    field("payload", "string", optional=True, name="io.debezium.data.Json", version=1),
    field("at", "int64", optional=True, name="io.debezium.time.Timestamp", version=1),
    field("micros", "int64", optional=True, name="io.debezium.time.MicroTimestamp", version=1),
    field("number", "int32", optional=True),
]
EVENT: dict[str, Any] = {
    "id": "76019d1a-ad2e-4b22-96e9-1a6d6543c818", "aggregatetype": "order", "aggregateid": "17", "type": "Placed",
    "payload": '{"a": 1, "b": [1.5, "x"], "c": null, "d": {"e": true}}', "at": 1709205753123,
    "micros": 1709205753123456, "number": 3,
}  # fmt: skip


def outbox(op: str = "c", **changed: Any) -> str:
    row = {**EVENT, **changed}
    before, after = (row, None) if op == "d" else (row if op == "u" else None, row)
    return envelope(OUTBOX, op, before, after, table="outbox")


EVENTS: dict[str, str | None] = {
    "create": outbox(),
    "read": outbox("r"),
    "update": outbox("u"),
    "delete": outbox("d"),
    "empty payload": outbox(payload=""),
    "null payload": outbox(payload=None),
    "no JSON": outbox(payload="{broken"),
    "JSON text": outbox(payload='"text"'),
    "JSON list": outbox(payload='[{"a":1},{"a":null,"b":"x"}]'),
    "mixed list": outbox(payload='[1,"x"]'),
    "empty object": outbox(payload="{}"),
    "large numbers": outbox(payload='{"i":2147483648,"f":1e300,"l":[],"n":[null]}'),
    "no times": outbox(at=None, micros=None, number=None),
    "tombstone": None,
    "heartbeat": HEARTBEAT,
    "no envelope": enveloped(row_schema(OUTBOX), EVENT),
    "schemaless": enveloped(None, {"a": 1}),
}
ROUTES: list[Any] = [
    stage(ROUTER),
    stage(ROUTER, route_topic_replacement="events.${routedByValue}"),
    stage(ROUTER, route_topic_regex="(?<routedByValue>o.)(.*)", route_topic_replacement="x.$2.$1"),
    stage(ROUTER, route_by_field="type"),
    stage(ROUTER, route_by_field="absent"),
    stage(ROUTER, route_tombstone_on_empty_payload="true"),
    stage(ROUTER, table_expand_json_payload="true"),
    stage(ROUTER, table_expand_json_payload="true", table_json_payload_null_behavior="optional_bytes"),
    stage(ROUTER, table_expand_json_payload="true", route_tombstone_on_empty_payload="true"),
    stage(ROUTER, table_field_event_key="number"),
    stage(ROUTER, table_field_event_key="absent"),
    stage(ROUTER, table_field_event_id="absent"),
    stage(ROUTER, table_field_event_payload="number"),
    stage(ROUTER, table_field_event_payload="absent"),
    stage(ROUTER, table_field_event_timestamp="at"),
    stage(ROUTER, table_field_event_timestamp="micros"),
    stage(ROUTER, table_field_event_timestamp="type"),
    stage(ROUTER, table_field_event_schema_version="number"),
    stage(ROUTER, table_fields_additional_placement="type:header,number:envelope,at:header:when"),
    stage(ROUTER, table_fields_additional_placement="type:envelope:kind,number:partition"),
    stage(ROUTER, table_fields_additional_placement="absent:header"),
    stage(ROUTER, table_fields_additional_placement="absent:header", table_fields_additional_error_on_missing="false"),
    stage(ROUTER, table_fields_additional_placement="type:nowhere"),
    stage(ROUTER, table_fields_additional_placement="type"),
    *(stage(ROUTER, table_op_invalid_behavior=each) for each in ("warn", "error", "fatal", "ignore")),
]


def debezium_cases() -> list[dict[str, Any]]:
    headers: Any = [DROPS, ["other", plain("int32", 2)]]
    unwraps = [
        {"chain": [each], "record": record(value, KEY, headers=headers, offset=None)}
        for each in UNWRAPS
        for value in CHANGES.values()
    ]
    routes = [
        {"chain": [each], "record": record(value, KEY, headers=[], offset=None)}
        for each in ROUTES
        for value in EVENTS.values()
    ]
    return unwraps + routes


MISTAKEN = (
    {"delete.tombstone.handling.mode": "none"},
    {"add.fields": "a:b:c"},
    {"table.fields.additional.placement": "type:nowhere"},
)
"""Configs that ours refuses as such. Java says 'Unable to validate config.', or has a NullPointerException."""


def debezium_differs(case: dict[str, Any]) -> bool:
    """Also: a payload that is a list of objects stays text in Java, under the schema of an array."""
    if "chain" not in case or not case["chain"] or not case["chain"][0]["class"].startswith("io.debezium"):
        return False
    config = case["chain"][0]["config"]
    listed = case["record"]["value"] == EVENTS["JSON list"] and config.get("table.expand.json.payload") == "true"
    return config in MISTAKEN or listed
