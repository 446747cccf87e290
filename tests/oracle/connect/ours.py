"""Our answers to the oracle's cases, in the same form."""

import json
import re
from base64 import b64decode, b64encode
from typing import Any

from ottla.connect import converters, header_converters, predicates, transforms
from ottla.connect.chain import Chain, Failed
from ottla.connect.converters.base import Converter
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.errors import ConnectException
from ottla.connect.data.java_text import as_float32, java_text
from ottla.connect.data.record import NOTHING, ConnectRecord, Header, SchemaAndValue
from ottla.connect.definitions import ConfigError
from ottla.connect.plugins import Catalogue, PluginType

CATALOGUE = Catalogue([*transforms.PLUGINS, *predicates.PLUGINS, *converters.PLUGINS, *header_converters.PLUGINS])
ENVELOPE = JsonConverter({"schemas.enable": "true", "replace.null.with.default": "false"}, "value")
_FLOAT = re.compile(r"-?\d\.\d+E-?\d+")
_CONFIG = "org.apache.kafka.common.config.ConfigException"


def answer(case: dict[str, Any]) -> dict[str, Any]:
    try:
        if "chain" in case:
            return _transformed(case)
        return _read(case) if "read" in case else _written(case)
    except ConfigError as error:
        return {"error": _CONFIG, "message": str(error)}
    except ConnectException as error:
        return {"error": error.java_class, "message": str(error)}


def part(text: str | None) -> SchemaAndValue:
    return NOTHING if text is None else ENVELOPE.read("t", text.encode())


def envelope(schema: Any, value: Any) -> str | None:
    found = ENVELOPE.write("t", SchemaAndValue(schema, value))
    return None if found is None else found.decode()


def record_of(given: dict[str, Any]) -> ConnectRecord:
    partition = given["partition"]
    if given["offset"] is not None and partition is None:
        partition = 0
    return ConnectRecord(
        given["topic"],
        partition,
        *part(given["key"]),
        *part(given["value"]),
        given["timestamp"],
        tuple(Header(key, *part(value)) for key, value in given["headers"]),
        given["offset"],
    )


def chain_of(case: dict[str, Any]) -> Chain:
    config: dict[str, str | None] = {"transforms": ",".join(f"t{n}" for n in range(len(case["chain"])))}
    named = []
    for number, stage in enumerate(case["chain"]):
        prefix = f"transforms.t{number}."
        config[prefix + "type"] = stage["class"]
        config |= {prefix + key: value for key, value in stage["config"].items()}
        if stage.get("predicate"):
            named.append(f"p{number}")
            config[prefix + "predicate"] = f"p{number}"
            config[prefix + "negate"] = "true" if stage.get("negate") else "false"
            config[f"predicates.p{number}.type"] = stage["predicate"]["class"]
            config |= {f"predicates.p{number}.{key}": value for key, value in stage["predicate"]["config"].items()}
    config["predicates"] = ",".join(named)
    return Chain.of(config, CATALOGUE)


def _transformed(case: dict[str, Any]) -> dict[str, Any]:
    [made] = chain_of(case).run([record_of(case["record"])])
    if made is None:
        return {"dropped": True}
    if isinstance(made, Failed):
        raise made.error
    return {
        "dropped": False,
        "topic": made.topic,
        "partition": made.partition,
        "timestamp": made.timestamp,
        "key": envelope(made.key_schema, made.key),
        "value": envelope(made.value_schema, made.value),
        "text": java_text(made.value, None if made.value_schema is None else made.value_schema.type),
        "headers": [[header.key, envelope(header.schema, header.value)] for header in made.headers],
    }


def converter_of(name: str, config: dict[str, str]) -> Converter:
    row = CATALOGUE.find(name, PluginType.CONVERTER) or CATALOGUE.find(name, PluginType.HEADER_CONVERTER)
    assert row is not None
    made: Converter = row.load()(config, "value")  # type: ignore[call-arg, assignment]
    return made


def _read(case: dict[str, Any]) -> dict[str, Any]:
    data = None if case["data"] is None else b64decode(case["data"])
    schema, value = converter_of(case["read"], case["config"]).read("t", data)
    text = java_text(value, None if schema is None else schema.type)
    return {"value": envelope(schema, value), "text": text}


def _written(case: dict[str, Any]) -> dict[str, Any]:
    data = converter_of(case["write"], case["config"]).write("t", part(case["value"]))
    return {"data": None if data is None else b64encode(data).decode()}


def alike(java: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Bytes are equal and so are errors' classes. Maps have no order in Java, and arrays of bytes print an address."""
    if java.get("error") != ours.get("error"):
        return False
    if "error" in java:
        return True
    for name in ("dropped", "topic", "partition", "timestamp"):
        if java.get(name) != ours.get(name):
            return False
    if len(java.get("headers", ())) != len(ours.get("headers", ())):
        return False
    pairs = [(java.get(name), ours.get(name)) for name in ("key", "value")]
    for (name, text), (our_name, our_text) in zip(java.get("headers", ()), ours.get("headers", ()), strict=True):
        pairs += [(name, our_name), (text, our_text)]
    return all(_same_json(*pair) for pair in pairs) and _same_text(_texts(java), _texts(ours))


def _same_json(java: str | None, ours: str | None) -> bool:
    if java in (ours, "unwritable"):
        return True
    if java is not None and ours is not None and _rounded(java) == _rounded(ours):
        return True
    return java is not None and ours is not None and _sorted(java) == _sorted(ours) and _holds_map(java)


def _rounded(text: str) -> str:
    """Java before 19 writes some floats of four bytes with more digits than tell them apart."""
    return _FLOAT.sub(lambda found: repr(as_float32(float(found[0]))), text)


def _holds_map(text: str) -> bool:
    return '"type":"map"' in text or not text.startswith('{"schema":{')


def _sorted(text: str) -> Any:
    try:
        return json.loads(text, parse_float=str, parse_int=str)
    except ValueError:
        return text


def _texts(found: dict[str, Any]) -> list[str]:
    data = found.get("data")
    return [found.get("text") or "", "" if data is None else b64decode(data).decode("latin-1")]


def _same_text(java: list[str], ours: list[str]) -> bool:
    return all(
        _rounded(one) == _rounded(other)
        or "[B@" in one
        or (sorted(one) == sorted(other) and "{" in one and not one.startswith('{"schema":{'))
        for one, other in zip(java, ours, strict=True)
    )
