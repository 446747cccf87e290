"""A node of `pip install ottla` alone, without what schemas need: it refuses what it cannot do and names what it lacks.

The libraries are hidden from the node and from all its processes by a `sitecustomize` before their own."""

import json
from collections.abc import Iterator

import pytest

from ottla.protocol.records import NewRecord, build_batch
from tests.support.nodes import Ottla, free_ports
from tests.support.patience import eventually
from tests.support.registries import ask
from tests.support.requests import NOON, create_topic, delete_topic, fetch, produce, records_in
from tests.support.wire import Wire

REQUEST_TIMED_OUT = 7
INVALID_RECORD = 87
HIDING = """
import sys
for name in ("fastavro", "google", "jsonschema_rs"):
    sys.modules[name] = None
"""
TO_HAVE_IT = "is not installed: pip install 'ottla[registry]' (in a clone of ottla: make setup)"
LIBRARIES = {"JSON": "jsonschema_rs", "PROTOBUF": "protobuf"}
IDS = {"AVRO": 101, "JSON": 102, "PROTOBUF": 103}
SCHEMAS = {"AVRO": '"string"', "JSON": '{"type":"object"}', "PROTOBUF": 'syntax = "proto3";\n\nmessage A {}\n'}


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def registry_port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, registry_port: int) -> Iterator[Ottla]:
    directory = tmp_path_factory.mktemp("bare")
    (directory / "sitecustomize.py").write_text(HIDING)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(directory))
        with Ottla(directory / "node", extra={"registry.listeners": f"http://127.0.0.1:{registry_port}"}) as node:
            yield node


@pytest.fixture(scope="module")
def url(node: Ottla, registry_port: int) -> str:
    return f"http://127.0.0.1:{registry_port}"


@pytest.mark.parametrize("language", LIBRARIES)
@pytest.mark.parametrize("path", ["/subjects/s/versions", "/subjects/s", "/compatibility/subjects/s/versions/latest"])
def test_a_schema_whose_library_is_missing_is_refused_with_the_way_to_have_it(
    url: str, language: str, path: str
) -> None:
    ask(url, "POST", "/subjects/s/versions", {"schema": SCHEMAS["AVRO"]})
    status, told = ask(url, "POST", path, {"schemaType": language, "schema": SCHEMAS[language]})
    assert (status, told) == (
        422,
        {
            "error_code": 42201,
            "message": f"Invalid schema of type {language}, details: {LIBRARIES[language]} {TO_HAVE_IT}",
        },
    )


def test_avro_schemas_need_no_library(url: str) -> None:
    status, told = ask(url, "POST", "/subjects/avro/versions", {"schema": SCHEMAS["AVRO"]})
    assert (status, told["schema"]) == (200, SCHEMAS["AVRO"])


@pytest.mark.parametrize("language", SCHEMAS)
def test_payloads_whose_library_is_missing_are_refused_and_are_no_dead_letters(
    node: Ottla, url: str, language: str
) -> None:
    """Schemas of all languages, as another registry left them in the topic."""
    topic = f"checked-{language.lower()}"
    stored = {
        "subject": f"{topic}-value", "version": 1, "id": IDS[language], "schemaType": language,
        "schema": SCHEMAS[language], "deleted": False,
    }  # fmt: skip
    key = {"keytype": "SCHEMA", "subject": f"{topic}-value", "version": 1, "magic": 1}
    dead = f"{topic}-dead"
    with Wire(node.bootstrap) as wire:
        ask(url, "GET", "/subjects")
        written = NewRecord(compact(key), compact(stored), NOON)
        assert produce(wire, "_schemas", bytes(build_batch([written]))).error_code == 0
        eventually(lambda: ask(url, "GET", f"/schemas/ids/{IDS[language]}")[0] == 200, "the registry has read it")
        create_topic(wire, dead)
        create_topic(
            wire,
            topic,
            configs={
                "confluent.value.schema.validation": "true",
                "ottla.schema.validation.depth": "payload",
                "ottla.schema.validation.dead.letter.topic": dead,
            },
        )
        value = b"\0" + IDS[language].to_bytes(4, "big") + b"\0"
        batch = bytes(build_batch([NewRecord(None, value, NOON)]))
        while (part := produce(wire, topic, batch)).error_code == REQUEST_TIMED_OUT:
            pass  # where the registry is slow the producer tries again
        library = {"AVRO": "fastavro", **LIBRARIES}[language]
        assert (part.error_code, part.error_message) == (
            INVALID_RECORD,
            f"the broker cannot read schemas of this type: {library} {TO_HAVE_IT}",
        )
        assert records_in(fetch(wire, dead).records) == []
        for each in (topic, dead):
            delete_topic(wire, each)
