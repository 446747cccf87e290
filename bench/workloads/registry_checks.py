"""The schema registry beside a node asked whether a schema of 1,000 fields may follow another one, in each language.

Each check is a new text, so that nothing about it is known: it is parsed, compared with the latest version and judged,
over one connection. The new schema has one field more (of JSON Schema, whose objects are open, one field less), and
differs from all others in a default, a description, a name. Judged is the longest of all checks after the first, which
loads what a language needs.
"""

import http.client
import json
import time
from collections.abc import Callable

from bench.context import Context
from bench.java_tools import ToolFailed
from bench.measures import Measure, Metric, value_at_most
from bench.process_cost import cpu_of
from bench.servers import Ottla, free_ports

FIELDS = 1_000
PATIENCE_SECONDS = 120.0


def avro(fields: int, number: int) -> str:
    told = [{"name": f"f{each}", "type": "long", "default": number if each == FIELDS else 0} for each in range(fields)]
    return json.dumps({"type": "record", "name": "R", "fields": told})


def json_schema(fields: int, number: int) -> str:
    told = {f"f{each}": {"type": "string"} for each in range(fields)}
    return json.dumps({"type": "object", "description": f"{number}", "properties": told})


def protobuf(fields: int, number: int) -> str:
    told = "".join(f"int64 f{each}_{number if each == FIELDS else 0} = {each + 1};" for each in range(fields))
    return f'syntax = "proto3"; message R {{ {told} }}'


LANGUAGES: dict[str, tuple[Callable[[int, int], str], int]] = {
    "AVRO": (avro, FIELDS + 1),
    "JSON": (json_schema, FIELDS - 1),
    "PROTOBUF": (protobuf, FIELDS + 1),
}
"""How a schema of so many fields is written, and how many the new one has."""
METRICS = tuple(
    metric
    for language in LANGUAGES
    for metric in (
        Metric(language, f"{language}, longest check", "ms", value_at_most(200)),
        Metric(f"{language} cpu", "CPU of one", "ms"),
    )
)


def run(context: Context) -> list[Measure]:
    trials = [trial(context, context.amount(30, 5)) for _ in range(min(3, context.rounds))]
    name = f"schema registry, checks of {FIELDS:,} fields"
    return [Measure(name, metric, (), tuple(found[metric.key] for found in trials)) for metric in METRICS]


def trial(context: Context, checks: int) -> dict[str, float]:
    (port,) = free_ports(1)
    server = context.new_server(Ottla)
    with server.properties.open("a") as file:
        file.write(f"registry.listeners=http://127.0.0.1:{port}\n")
    server.start()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    found = {}
    for language, (written, fields) in LANGUAGES.items():
        asked(connection, f"/subjects/{language}/versions", language, written(FIELDS, 0))
        path = f"/compatibility/subjects/{language}/versions"
        asked(connection, path, language, written(fields, 1))
        before = cpu_of(server.pid)
        found[language] = 1e3 * max(
            asked(connection, path, language, written(fields, number)) for number in range(2, 2 + checks)
        )
        found[f"{language} cpu"] = 1e3 * cpu_of(server.pid).since(before).total / checks
    connection.close()
    context.discard(server)
    return found


def asked(connection: http.client.HTTPConnection, path: str, language: str, schema: str) -> float:
    """Seconds until it was answered that all is well."""
    body = json.dumps({"schema": schema, "schemaType": language})
    began = time.perf_counter()
    connection.request("POST", path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    took = time.perf_counter() - began
    if answer.status != http.HTTPStatus.OK or not content.get("is_compatible", True):
        raise ToolFailed(f"{path} answers {answer.status}: {content}")
    return took
