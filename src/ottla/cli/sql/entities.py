"""What statements answer, drawn for people: a function for each kind of entity, found by its `@type`.

What a kind without one holds is shown as JSON, so that nothing a newer server says is lost.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.cli.output import Cell, Table

Entity = Mapping[str, Any]

_NOT_SHOWN: Final = ("@type", "statementText", "warnings")


def told(entity: Entity) -> str:
    try:
        drawn = _DRAWN.get(entity["@type"], _as_json)(entity)
    except (KeyError, TypeError, AttributeError):  # a server of another kind or age says something else
        drawn = _as_json(entity)
    return "\n".join([drawn.rstrip("\n"), *(f"warning: {each['message']}" for each in entity.get("warnings") or ())])


def type_text(schema: Entity) -> str:
    """A type as SQL writes it: DECIMAL(6, 2), ARRAY<STRUCT<A INTEGER>>."""
    name = str(schema["type"])
    if (given := schema.get("parameters")) is not None:
        return f"{name}({given['precision']}, {given['scale']})"
    if schema.get("fields"):
        return f"{name}<{', '.join(_field_text(each) for each in schema['fields'])}>"
    if (member := schema.get("memberSchema")) is not None:
        return f"{name}<{'STRING, ' if name == 'MAP' else ''}{type_text(member)}>"
    return name


def _field_text(field: Entity) -> str:
    return f"{field['name']} {type_text(field['schema'])}"


# ---- parts


def _table(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    table = Table(*headings)
    for row in rows:
        table.add(*row)
    return table.text() if table.rows else "(none)"


def _facts(pairs: Iterable[tuple[str, Any]]) -> str:
    """A name and what it is, a line each; what there is none of is left out."""
    known = [(name, str(each)) for name, each in pairs if each not in (None, "", [], {})]
    width = max(len(name) for name, _ in known)
    return "\n".join(f"{name.ljust(width)}  {each}" for name, each in known)


def _blocks(*blocks: str) -> str:
    return "\n\n".join(each.rstrip("\n") for each in blocks if each)


def _titled(title: str, text: str | None) -> str:
    return f"{title}:\n{text.rstrip()}" if text else ""


def _one_line(statement: str) -> str:
    return " ".join(statement.split())


def _columns(fields: Sequence[Entity]) -> str:
    return _table(("COLUMN", "TYPE", "OF"), ((each["name"], type_text(each["schema"]), _part(each)) for each in fields))


def _part(field: Entity) -> str:
    kind = str(field.get("type") or "value").lower()
    return f"{kind} {field['headerKey']}" if field.get("headerKey") else kind


# ---- lists


def _sources(entity: Entity) -> str:
    rows = entity["streams"] if entity["@type"] == "streams" else entity["tables"]
    return _table(
        ("NAME", "TOPIC", "KEY FORMAT", "VALUE FORMAT", "WINDOWED"),
        (
            (each["name"], each["topic"], each["keyFormat"], each["valueFormat"], "yes" if each["isWindowed"] else "no")
            for each in rows
        ),
    )


def _queries(entity: Entity) -> str:
    return _query_rows(entity["queries"])


def _query_rows(rows: Sequence[Entity]) -> str:
    return _table(
        ("ID", "KIND", "STATE", "WRITES", "TOPIC", "STATEMENT"),
        (
            (
                each["id"],
                each["queryType"].lower(),
                each["state"],
                ", ".join(each["sinks"]) or None,
                ", ".join(each["sinkKafkaTopics"]) or None,
                _one_line(each["queryString"]),
            )
            for each in rows
        ),
    )


def _topics(entity: Entity) -> str:
    counts = ("consumerCount", "consumerGroupCount") if entity["@type"] == "kafka_topics_extended" else ()
    return _table(
        ("TOPIC", "PARTITIONS", "REPLICAS", *("CONSUMERS", "GROUPS")[: len(counts)]),
        (
            (
                each["name"],
                len(each["replicaInfo"]),
                max(each["replicaInfo"], default=0),
                *(each[name] for name in counts),
            )
            for each in entity["topics"]
        ),
    )


def _functions(entity: Entity) -> str:
    return _table(("NAME", "KIND"), ((each["name"], each["type"].lower()) for each in entity["functions"]))


def _types(entity: Entity) -> str:
    return _table(("NAME", "TYPE"), ((name, type_text(schema)) for name, schema in sorted(entity["types"].items())))


def _properties(entity: Entity) -> str:
    own = set(entity["overwrittenProperties"])
    return _table(
        ("PROPERTY", "VALUE", "SET HERE"),
        ((each["name"], each["value"], "yes" if each["name"] in own else "no") for each in entity["properties"]),
    )


def _variables(entity: Entity) -> str:
    return _table(("NAME", "VALUE"), ((each["name"], each["value"]) for each in entity["variables"]))


def _connectors(entity: Entity) -> str:
    rows = ((each["name"], each["type"], each["className"], each["state"]) for each in entity["connectors"])
    return _table(("NAME", "TYPE", "CLASS", "STATE"), rows)


def _plugins(entity: Entity) -> str:
    rows = ((each["className"], each["type"], each["version"]) for each in entity["connectorPlugins"])
    return _table(("CLASS", "TYPE", "VERSION"), rows)


# ---- one thing


def _source(entity: Entity) -> str:
    return _described(entity["sourceDescription"])


def _all_sources(entity: Entity) -> str:
    return _blocks(*map(_described, entity["sourceDescriptions"])) or "(none)"


def _described(found: Entity) -> str:
    """A stream or table; EXTENDED all that is known of it."""
    if not found["extended"]:
        facts = _facts([("name", found["name"]), ("statement", _one_line(found["statement"]))])
        return _blocks(facts, _columns(found["fields"]))
    facts = _facts(
        [
            ("name", found["name"]),
            ("kind", found["type"].lower()),
            ("window", found["windowType"]),
            ("time of a record", found["timestamp"]),
            ("formats", f"{found['keyFormat']} keys, {found['valueFormat']} values"),
            ("topic", found["topic"]),
            ("partitions", found["partitions"]),
            ("replicas", found["replication"]),
            ("statement", _one_line(found["statement"])),
        ]
    )
    return _blocks(
        facts,
        _columns(found["fields"]),
        _titled("written by", _query_rows(found["writeQueries"]) if found["writeQueries"] else ""),
        _titled("read by", _query_rows(found["readQueries"]) if found["readQueries"] else ""),
        _titled("so far", found["statistics"]),
        _titled("left out", found["errorStats"]),
    )


def _query(entity: Entity) -> str:
    return _explained(entity["queryDescription"])


def _all_queries(entity: Entity) -> str:
    return _blocks(*map(_explained, entity["queryDescriptions"])) or "(none)"


def _explained(found: Entity) -> str:
    facts = _facts(
        [
            ("id", found["id"]),
            ("kind", found["queryType"].lower()),
            ("state", found["state"]),
            ("window", found["windowType"]),
            ("reads", ", ".join(found["sources"])),
            ("writes", ", ".join(found["sinks"])),
            ("statement", _one_line(found["statementText"])),
            *sorted(found["overriddenProperties"].items()),
        ]
    )
    errors = "\n".join(str(each.get("errorMessage", each)) for each in found["queryErrors"])
    return _blocks(
        facts,
        _columns(found["fields"]),
        _titled("how it runs", found["executionPlan"]),
        _titled("topology", found["topology"]),
        _titled("errors", errors),
    )


def _function(entity: Entity) -> str:
    about = _facts([("name", entity["name"]), ("kind", entity["type"].lower()), ("about", entity["description"])])
    return _blocks(about, "\n".join(_call(entity["name"], each) for each in entity["functions"]))


def _call(name: str, found: Entity) -> str:
    given = (f"{each['type']}{'...' if each['isVariadic'] else ''}" for each in found["arguments"])
    return f"{name}({', '.join(given)}) -> {found['returnType']}"


def _connector(entity: Entity) -> str:
    status = entity["status"]
    states = [("connector", status["connector"]), *((f"task {each['id']}", each) for each in status["tasks"])]
    return _blocks(
        _facts(
            [("name", status["name"]), ("class", entity["connectorClass"]), ("topics", ", ".join(entity["topics"]))]
        ),
        _table(("PART", "STATE", "WORKER"), ((part, each["state"], each["worker_id"]) for part, each in states)),
        *(_titled(f"why {part} failed", each.get("trace")) for part, each in states),
    )


# ---- what was done


def _status(entity: Entity) -> str:
    return str(entity["commandStatus"]["message"])


def _ended(entity: Entity) -> str:
    return f"Query {entity['queryId']} terminated"


def _connector_made(entity: Entity) -> str:
    return f"Connector {entity['info']['name']} created"


def _connector_dropped(entity: Entity) -> str:
    return f"Connector {entity['connectorName']} dropped"


def _message(entity: Entity) -> str:
    return str(entity["message"])


def _asserted(entity: Entity) -> str:
    named = [str(entity[name]) for name in ("topicName", "subject", "id") if entity.get(name) is not None]
    what = "topic" if entity["@type"] == "assert_topic" else "schema"
    return f"As asserted: {what} {' '.join(named)} {'is there' if entity['exists'] else 'is not there'}"


def _as_json(entity: Entity) -> str:
    return json.dumps({name: each for name, each in entity.items() if name not in _NOT_SHOWN}, indent=2)


_DRAWN: Final[Mapping[str, Callable[[Entity], str]]] = {
    "streams": _sources,
    "tables": _sources,
    "queries": _queries,
    "kafka_topics": _topics,
    "kafka_topics_extended": _topics,
    "function_names": _functions,
    "type_list": _types,
    "properties": _properties,
    "variables": _variables,
    "connector_list": _connectors,
    "connector_plugins_list": _plugins,
    "sourceDescription": _source,
    "source_descriptions": _all_sources,
    "queryDescription": _query,
    "query_descriptions": _all_queries,
    "describe_function": _function,
    "connector_description": _connector,
    "currentStatus": _status,
    "terminate_query": _ended,
    "connector_info": _connector_made,
    "drop_connector": _connector_dropped,
    "warning_entity": _message,
    "assert_topic": _asserted,
    "assert_schema": _asserted,
}
