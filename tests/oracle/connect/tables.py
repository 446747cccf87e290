"""The cases: each transform with its options over records of both worlds, each converter over bytes good and bad."""

import json
from base64 import b64encode
from typing import Any

KAFKA = "org.apache.kafka.connect.transforms"
NAMED = "org.apache.kafka.connect.data."


def field(named: str, type_: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "optional": False, **more, "field": named}


INNER = {
    "type": "struct",
    "optional": True,
    "name": "inner",
    "fields": [field("x", "int32"), field("y", "string", optional=True, default="why"), field("dotted.name", "int64")],
}
ROW = {
    "type": "struct",
    "optional": False,
    "name": "row",
    "version": 2,
    "doc": "a row",
    "parameters": {"p": "q"},
    "fields": [
        field("i8", "int8"),
        field("i16", "int16"),
        field("i32", "int32", optional=True, default=7),
        field("i64", "int64"),
        field("f32", "float"),
        field("f64", "double"),
        field("flag", "boolean"),
        field("text", "string", optional=True),
        field("raw", "bytes"),
        field("list", "array", items={"type": "int32", "optional": False}),
        field("day", "int32", name=NAMED + "Date", version=1),
        field("clock", "int32", name=NAMED + "Time", version=1),
        field("at", "int64", name=NAMED + "Timestamp", version=1, optional=True),
        field("price", "bytes", name=NAMED + "Decimal", version=1, parameters={"scale": "2"}),
        {**INNER, "field": "inner"},
    ],
}
FULL = {
    "i8": -3,
    "i16": 300,
    "i32": 70000,
    "i64": 1699999973376,
    "f32": 1.5,
    "f64": 12345678.25,
    "flag": True,
    "text": "hé\u0001llo",
    "raw": b64encode(b"\x00\xffabc").decode(),
    "list": [1, 2, 3],
    "day": 19000,
    "clock": 3723004,
    "at": 1699999973376,
    "price": b64encode((12345).to_bytes(2, "big")).decode(),
    "inner": {"x": 1, "y": "z", "dotted.name": 9},
}
SPARSE = {**FULL, "i32": None, "text": None, "at": None, "inner": None, "i64": 0, "f64": -0.0001, "flag": False}
DEFAULTED = {**FULL, "inner": {"x": 1, "y": None, "dotted.name": 9}, "i32": None}
MAP_ROW = {
    "type": "struct",
    "optional": False,
    "fields": [
        field("m", "map", keys={"type": "string", "optional": False}, values={"type": "int64", "optional": False}),
        field("n", "map", keys={"type": "int32", "optional": False}, values={"type": "string", "optional": True}),
    ],
}


def enveloped(schema: Any, payload: Any) -> str:
    return json.dumps({"schema": schema, "payload": payload}, ensure_ascii=False)


def plain(type_: str, payload: Any, **more: Any) -> str:
    return enveloped({"type": type_, "optional": False, **more}, payload)


PLAIN_ROW = {"i64": 5, "f64": 2.5, "big": 1e22, "flag": True, "text": "12", "none": None, "list": [1, [2], {"a": None}]}
SCHEMALESS = {**PLAIN_ROW, "inner": {"x": 1, "deeper": {"y": "z"}, "dotted.name": 9}, "at": 1699999973376}
VALUES: dict[str, str | None] = {
    "full": enveloped(ROW, FULL),
    "sparse": enveloped(ROW, SPARSE),
    "defaulted": enveloped(ROW, DEFAULTED),
    "maps": enveloped(MAP_ROW, {"m": {"a": 1}, "n": [[1, "x"], [2, None]]}),
    "schemaless": enveloped(None, SCHEMALESS),
    "schemaless list": enveloped(None, [1, "a"]),
    "schemaless text": enveloped(None, "2024-02-29 11:22:33"),
    "schemaless number": enveloped(None, 1699999973376),
    "schemaless flag": enveloped(None, True),
    "null": None,
    "null struct": enveloped({**ROW, "optional": True}, None),
    "string": plain("string", "42"),
    "long": plain("int64", 1699999973376),
    "int": plain("int32", 42),
    "double": plain("double", 1e300),
    "bytes": plain("bytes", "AAEC"),
    "timestamp": plain("int64", -1, name=NAMED + "Timestamp", version=1),
    "date": plain("int32", -1, name=NAMED + "Date", version=1),
    "array": plain("array", [1.5, 2], items={"type": "float", "optional": False}),
}
HEADERS: list[list[str | None]] = [
    ["h", plain("string", "one")],
    ["other", plain("int32", 2)],
    ["h", enveloped(None, "two")],
    ["empty", None],
]


def record(value: str | None, key: str | None = None, **more: Any) -> dict[str, Any]:
    given = {"topic": "orders-eu", "partition": 3, "timestamp": 1709205753123, "headers": HEADERS, "offset": 42}
    return {**given, **more, "key": key, "value": value}


def stage(named: str, *condition: Any, **config: str) -> Any:
    """`condition`: a predicate with its config, and whether it is negated."""
    texts = {key.replace("_", "."): value for key, value in config.items()}
    made: dict[str, Any] = {"class": f"{KAFKA}.{named}", "config": texts, "negate": bool(condition[1:])}
    if condition:
        name, own = condition[0]
        made["predicate"] = {"class": f"{KAFKA}.predicates.{name}", "config": own}
    return made


STAGES: list[Any] = [
    *(stage("Cast$Value", spec=spec) for spec in ("int8", "int16", "int32", "int64", "float32", "float64", "boolean")),
    stage("Cast$Value", spec="string"),
    stage("Cast$Value", spec="i64:int8,f64:int32,flag:float32,text:boolean,i8:string,f32:string"),
    stage("Cast$Value", spec="i8:float64,day:int64,at:string,clock:string,price:int32,raw:string,i32:int64"),
    stage("Cast$Value", spec="text:int64"),
    stage("Cast$Value", spec="text:float64, f64:string,big:int64,big:string"),
    stage("Cast$Value", spec="list:string"),
    stage("Cast$Value", spec="raw:int8"),
    stage("Cast$Value", spec="inner:string"),
    stage("Cast$Value", spec="i32:string", replace_null_with_default="false"),
    stage("Cast$Key", spec="string"),
    stage("Cast$Value", spec="a:b:c"),
    stage("Cast$Value", spec="a:bytes"),
    stage("Cast$Value", spec="int8,a:int8"),
    stage("Cast$Value", spec="a:nothing"),
    stage("Cast$Value", spec=""),
    stage("DropHeaders", headers="h"),
    stage("DropHeaders", headers="none,other"),
    stage("DropHeaders"),
    stage("ExtractField$Value", field="i32"),
    stage("ExtractField$Value", field="inner.x"),
    stage("ExtractField$Value", **{"field": "inner.x", "field.syntax.version": "V2"}),
    stage("ExtractField$Value", **{"field": "inner.`dotted.name`", "field.syntax.version": "v2"}),
    stage(
        "ExtractField$Value", **{"field": "inner.y", "field.syntax.version": "V2", "replace.null.with.default": "false"}
    ),
    stage("ExtractField$Value", **{"field": "inner.y", "field.syntax.version": "V2"}),
    stage("ExtractField$Value", **{"field": "text.y", "field.syntax.version": "V2"}),
    stage("ExtractField$Value", **{"field": "inner.`y", "field.syntax.version": "V2"}),
    stage("ExtractField$Value", **{"field": "inner.deeper.y", "field.syntax.version": "V2"}),
    stage("ExtractField$Value", **{"field": "x", "field.syntax.version": "V3"}),
    stage("ExtractField$Key", field="id"),
    stage("Filter"),
    stage("Flatten$Value"),
    stage("Flatten$Value", delimiter="_"),
    stage("Flatten$Key"),
    stage("HeaderFrom$Value", fields="i32,text", headers="a,b", operation="copy"),
    stage("HeaderFrom$Value", fields="i32,text", headers="a,b", operation="move"),
    stage("HeaderFrom$Value", fields="i32", headers="a", operation="move", replace_null_with_default="false"),
    stage("HeaderFrom$Value", fields="absent", headers="a", operation="copy"),
    stage("HeaderFrom$Value", fields="a,b", headers="a", operation="copy"),
    stage("HeaderFrom$Value", fields="a", headers="a", operation="mov"),
    stage("HeaderFrom$Key", fields="id", headers="a", operation="move"),
    stage("HoistField$Value", field="wrapped"),
    stage("HoistField$Key", field="wrapped"),
    stage("HoistField$Value"),
    stage("InsertField$Value", **{"topic.field": "t!", "static.field": "s", "static.value": "v"}),
    stage("InsertField$Value", **{"partition.field": "p?", "offset.field": "o!", "timestamp.field": "ts"}),
    stage("InsertField$Value", **{"timestamp.field": "ts!"}),
    stage("InsertField$Value", **{"topic.field": "text"}),
    stage("InsertField$Value", **{"topic.field": "t", "replace.null.with.default": "false"}),
    stage("InsertField$Key", **{"topic.field": "t"}),
    stage("InsertField$Value"),
    stage("InsertField$Value", **{"static.field": "s"}),
    *(
        stage("InsertHeader", **{"header": "new", "value.literal": text})
        for text in ("1", "text", "[1,2]", '{"a":1}', "2020-01-31", "null", "", "3.5")
    ),
    stage("InsertHeader", header="new"),
    stage("MaskField$Value", fields="i8,i16,i32,i64,f32,f64,flag,text,list,day,clock,at,price"),
    stage("MaskField$Value", fields="i64,f64,text", replacement="7"),
    stage("MaskField$Value", fields="i8,price,f32", replacement="300"),
    stage("MaskField$Value", fields="i64", replacement="many"),
    stage("MaskField$Value", fields="flag", replacement="x"),
    stage("MaskField$Value", fields="raw"),
    stage("MaskField$Value", fields="inner"),
    stage("MaskField$Value", fields="i32,none", replace_null_with_default="false"),
    stage("MaskField$Value", fields="text", replacement=""),
    stage("MaskField$Value", fields=""),
    stage("MaskField$Key", fields="id"),
    stage("RegexRouter", regex="(.*)-(.*)", replacement="$2.$1"),
    stage("RegexRouter", regex="(?<name>.*)-eu", replacement="${name}"),
    stage("RegexRouter", regex="orders", replacement="x"),
    stage("RegexRouter", regex="orders-(?!us).*", replacement="elsewhere"),
    stage("RegexRouter", regex="o|orders-eu", replacement="x"),
    stage("RegexRouter", regex=".*", replacement="$3"),
    stage("RegexRouter", regex=".*", replacement="\\$1"),
    stage("RegexRouter", regex=".*", replacement="$"),
    stage("RegexRouter", regex="(", replacement="x"),
    stage("ReplaceField$Value", exclude="i32,inner"),
    stage("ReplaceField$Value", include="i32,text,flag", renames="i32:number,text:i8"),
    stage("ReplaceField$Value", renames="i32:text"),
    stage("ReplaceField$Value", renames="i32"),
    stage("ReplaceField$Value", include="i32,inner", replace_null_with_default="false"),
    stage("ReplaceField$Value", exclude="a,a"),
    stage("ReplaceField$Key", renames="id:key"),
    stage("SetSchemaMetadata$Value", **{"schema.name": "n", "schema.version": "9"}),
    stage("SetSchemaMetadata$Value", **{"schema.version": "9", "replace.null.with.default": "false"}),
    stage("SetSchemaMetadata$Value"),
    stage("SetSchemaMetadata$Value", **{"schema.version": "nine"}),
    stage("SetSchemaMetadata$Key", **{"schema.name": "n"}),
    *(stage("TimestampConverter$Value", target_type=target) for target in ("unix", "Date", "Time", "Timestamp")),
    stage("TimestampConverter$Value", target_type="string"),
    *(
        stage("TimestampConverter$Value", **{"target.type": target, "field": name, "unix.precision": precision})
        for target, name, precision in (
            ("unix", "at", "milliseconds"),
            ("unix", "at", "seconds"),
            ("unix", "day", "microseconds"),
            ("unix", "clock", "nanoseconds"),
            ("Date", "at", "milliseconds"),
            ("Time", "at", "milliseconds"),
            ("Timestamp", "i64", "seconds"),
            ("Timestamp", "i64", "microseconds"),
            ("Timestamp", "i32", "milliseconds"),
            ("Timestamp", "flag", "milliseconds"),
            ("Timestamp", "text", "milliseconds"),
            ("Timestamp", "absent", "milliseconds"),
        )
    ),
    *(
        stage("TimestampConverter$Value", **{"target.type": "string", "field": "at", "format": pattern})
        for pattern in (
            "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
            "EEE, d MMM yy h:mm a z",
            "EEEE MMMM DDD D w W F u G k K",
            "''yyyyyy MM''SS",
            "Z X XX zzzz L LLL Y",
            "b",
        )
    ),
    stage("TimestampConverter$Value", **{"target.type": "Timestamp", "format": "yyyy-MM-dd HH:mm:ss"}),
    stage("TimestampConverter$Value", **{"target.type": "Timestamp", "format": "yyyy-MM-dd'T'HH"}),
    stage("TimestampConverter$Value", **{"target.type": "unix", "format": "yy-M-d H"}),
    stage("TimestampConverter$Value", **{"target.type": "dates"}),
    stage("TimestampConverter$Key", **{"target.type": "unix", "field": "id"}),
    stage("TimestampRouter"),
    stage(
        "TimestampRouter", **{"topic.format": "${timestamp}/${topic}/${timestamp}", "timestamp.format": "yyyy/MM HH"}
    ),
    stage("ValueToKey", fields="i32,text"),
    stage("ValueToKey", fields="i32", replace_null_with_default="false"),
    stage("ValueToKey", fields="absent"),
    stage("ValueToKey", fields=""),
    stage("Filter", ("RecordIsTombstone", {})),
    stage("Filter", ("RecordIsTombstone", {}), "negate"),
    stage("Filter", ("HasHeaderKey", {"name": "other"})),
    stage("Filter", ("HasHeaderKey", {"name": "absent"})),
    stage("Filter", ("HasHeaderKey", {"name": ""})),
    stage("Filter", ("TopicNameMatches", {"pattern": "orders.*"})),
    stage("Filter", ("TopicNameMatches", {"pattern": "orders"})),
    stage("Filter", ("TopicNameMatches", {"pattern": "["})),
]
KEYS: list[str | None] = [
    None,
    plain("int64", 7),
    enveloped({"type": "struct", "optional": False, "fields": [field("id", "int64")]}, {"id": 7}),
    enveloped(None, {"id": 7, "in": {"a": 1}}),
    enveloped(None, "k"),
]


def transform_cases() -> list[dict[str, Any]]:
    cases = [{"chain": [each], "record": record(value, KEYS[1])} for each in STAGES for value in VALUES.values()]
    cases += [
        {"chain": [each], "record": record(VALUES["full"], key)}
        for each in STAGES
        if each["class"].endswith("$Key")
        for key in KEYS
    ]
    inserting = [each for each in STAGES if "InsertField" in each["class"] or "Router" in each["class"]]
    nowhere = {"partition": None, "timestamp": None, "offset": None}
    cases += [{"chain": [each], "record": record(VALUES["full"], **nowhere)} for each in inserting]
    return cases


CONVERTERS: dict[str, list[dict[str, str]]] = {
    **{f"org.apache.kafka.connect.converters.{name}Converter": [{}] for name in ("Boolean", "ByteArray", "Double")},
    **{f"org.apache.kafka.connect.converters.{name}Converter": [{}] for name in ("Float", "Integer", "Long", "Short")},
    "org.apache.kafka.connect.storage.StringConverter": [{}, {"converter.encoding": "ISO-8859-1"}],
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": [{}],
    "org.apache.kafka.connect.json.JsonConverter": [
        {},
        {"schemas.enable": "false"},
        {"decimal.format": "numeric"},
        {"replace.null.with.default": "false"},
        {"schema.content": json.dumps(ROW)},
        {"decimal.format": "else"},
    ],
}
TEXTS = [
    "1", "-1", "127", "128", "40000", "3000000000", "1.0", "0.5", "3.14", "1e3", "1e40", "-0", "+5", "0x1F", "1_000",
    "99999999999999999999", "123456789012345678901234567890.5", "true", "false", "TRUE", "null", "text", "", " ",
    "  1 ", "[]", "[1]", "[1,2,300]", "[1, \"a\"]", "[1,,2]", "[1", "[1]]", "[null]", "[1,null]", "[true,false]",
    "[1,2.5]", "[\"a\",\"b\"]", "{}", "{\"a\":1}", "{\"a\":1,\"b\":null}", "{\"a\":null}", "{a:1}", "{1:2,3:400}",
    "{\"a\"}",
    "{\"a\":[1,2],\"b\":[3]}", "[{\"a\":1}]", "2020-01-31", "12:34:56.789Z", "2020-01-31T12:34:56.789Z", "2020-13-45",
    "\"quoted\"", "[\"2020-01-31\"]", "a:b", "a,b", "true}", "1:2", "\\:", "{\"a\\\"b\":1}", "é", "12:34", "2020-1-31x",
    "[[1],[2]]", "[1.5,\"x\"]", "1 2", "+", "-", "1.", ".5", "1e", "NaN", "Infinity",
]  # fmt: skip
BYTES: list[bytes | None] = [
    None, b"", b"\x00", b"\x01", b"\x02", b"\x00\x01", b"\x00\x00\x00\x2a", b"\xff" * 8, b"\x40\x49\x0f\xdb",
    b"caf\xe9", b"{", b"null", b"[1,2.50,true,null]", b'{"a":1,"a":2}', b"007", b"1 trailing",
    b'{"b":{"c":[{}]}}', b'"\\u00e9"',
    b"1.5e3", b"123456789012345678", b'{"schema":null,"payload":{"a":1}}', b'{"schema":null}', b'{"payload":1}',
    b'{"schema":{"type":"int32"},"payload":5}', b'{"schema":{"type":"int32"},"payload":null}',
    b'{"schema":{"type":"int32","optional":true},"payload":null}', b'{"schema":{"type":"what"},"payload":1}',
    b'{"schema":{"type":"struct"},"payload":{}}', b'{"schema":{"type":"array"},"payload":[]}',
    b'{"schema":{"type":"map"},"payload":{}}', b'{"schema":{"type":"struct","fields":[{"type":"int8"}]},"payload":{}}',
    b'{"schema":{"type":"struct","fields":[{"type":"int8","field":"a"}]},"payload":{}}',
    b'{"schema":{"type":"struct","fields":[{"type":"int8","field":"a"}]},"payload":[]}',
    b'{"schema":{"type":"bytes"},"payload":"***"}', b'{"schema":{"type":"string"},"payload":"x"} tail',
    b'{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Date"},"payload":"x"}',
    b'{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Time"},"payload":-5}',
    b'{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}},"payload":1.10}',
    b'{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}},"payload":true}',
    b'{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"a":"2"}},"payload":"AQ=="}',
    b'{"schema":{"type":"int64","default":5,"doc":"d","version":3,"parameters":{"a":"b"}},"payload":null}',
    b'{"schema":{"type":"int64","default":"x"},"payload":1}',
    b'{"schema":{"type":"string","parameters":{"a":1}},"payload":"x"}',
    b'{"schema":{"type":"map","keys":{"type":"int32"},"values":{"type":"string"}},"payload":[[1]]}',
    b'{"schema":{"type":"map","keys":{"type":"int32"},"values":{"type":"string"}},"payload":{}}',
]  # fmt: skip


def converter_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    data = [*BYTES, *(text.encode() for text in TEXTS)]
    for name, configs in CONVERTERS.items():
        for config in configs:
            for each in data:
                coded = None if each is None else b64encode(each).decode()
                cases.append({"read": name, "config": config, "data": coded})
            cases += [{"write": name, "config": config, "value": value} for value in VALUES.values()]
    return cases
