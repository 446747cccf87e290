"""`ottla schemas` against running registries."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ottla.client.addresses import parse_bootstrap
from ottla.registry.service import RegistryService
from ottla.registry.settings import RegistrySettings
from tests.conftest import NewTopicName
from tests.wire.test_cli import Shell

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "number"}},
    "additionalProperties": False,
}
WITH_MAIL = {**PERSON, "properties": {**PERSON["properties"], "mail": {"type": "string"}}}
NARROWER = {**PERSON, "properties": {**PERSON["properties"], "age": {"type": "integer"}}}


@pytest.fixture(scope="module")
def registries(bootstrap: str) -> Iterator[list[str]]:
    """Two of them, each with a topic of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    topics = ("_schemas-cli-1", "_schemas-cli-2")
    services = [
        RegistryService(
            RegistrySettings.of({"registry.listeners": "http://127.0.0.1:0", "kafkastore.topic": topic}),
            parse_bootstrap(bootstrap),
        )
        for topic in topics
    ]

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        for service in services:
            run(service.start())
        yield [service.addresses[0] for service in services]
    finally:
        for service in services:
            run(service.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def ottla(
    registries: list[str],
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    monkeypatch.setenv("OTTLA_REGISTRY", registries[0])
    for name, schema in (("person", PERSON), ("mail", WITH_MAIL), ("narrower", NARROWER)):
        (tmp_path / f"{name}.json").write_text(json.dumps(schema, indent=2))
    monkeypatch.chdir(tmp_path)
    return Shell(capsysbinary, tmp_path)


@pytest.fixture
def subject(new_topic_name: NewTopicName) -> str:
    return f"{new_topic_name()}/value"


def test_a_schema_is_registered_listed_and_shown(ottla: Shell, subject: str) -> None:
    first = ottla.json("schemas", "register", subject, "person.json")
    assert first["version"] == 1
    assert ottla("schemas", "register", subject, "mail.json").startswith(f"{subject}: version 2, id ")
    (row,) = [row for row in ottla.json("schemas", "list", "--prefix", subject) if row["subject"] == subject]
    assert (row["type"], row["latest"], row["versions"]) == ("JSON Schema", 2, 2)
    shown = ottla("schemas", "show", subject, "1")
    assert "compatibility BACKWARD" in shown
    assert '  "properties": {' in shown
    raw = ottla("schemas", "show", subject, "1", "--raw")
    assert json.loads(raw) == PERSON
    by_id = ottla.json("schemas", "show", "--id", str(first["id"]))
    assert {"subject": subject, "version": 1} in by_id["used_by"]


def test_a_schema_that_is_not_compatible_is_told_why(ottla: Shell, subject: str) -> None:
    ottla("schemas", "register", subject, "person.json")
    refused = ottla("schemas", "register", subject, "narrower.json", fails=1)
    assert f"{subject}: the schema is not compatible with an earlier one" in refused
    assert "A type at path '#/properties/age' is different between the new schema and the old schema" in refused
    assert "hint: 'records of the old type would be refused" in refused
    assert "oldSchema:" not in refused
    assert ottla("schemas", "check", subject, "mail.json") == (
        f"{subject}: compatible with the versions that its level names\n"
    )
    ottla("schemas", "check", subject, "narrower.json", "--against", "latest", fails=1)
    assert ottla.json("schemas", "show", subject)["versions"] == [1]


def test_diff_tells_what_changed_and_who_can_read_what(ottla: Shell, subject: str) -> None:
    ottla("schemas", "register", subject, "person.json")
    only = ottla("schemas", "diff", subject, fails=1)
    assert "has version 1 only" in only
    ottla("schemas", "register", subject, "mail.json")
    shown = ottla("schemas", "diff", subject)
    assert shown.splitlines()[:3] == [
        f"{subject} (JSON): version 1 → version 2, 1 change",
        "  + mail: string",
        "BACKWARD yes: version 2 reads what was written with version 1",
    ]
    assert "FORWARD  no: version 1 does not read all that was written with version 2" in shown
    assert "The old schema has a closed content model" in shown
    told = ottla.json("schemas", "diff", subject, "1", "--file", "narrower.json")
    assert told["changes"] == [
        {"kind": "changed", "field": "age", "what": "type", "before": "number", "after": "integer"}
    ]
    assert (len(told["refusals"]["BACKWARD"]), told["refusals"]["FORWARD"]) == (1, [])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("x.avsc", ""),
        ("x.avsc", "{"),
        ("x.avsc", "3"),
        ("x.avsc", '{"type": "record", "name": "x", "fields": 3}'),
        ("x.json", ""),
        ("x.json", '{"type": 3}'),
        ("x.proto", "message {"),
    ],
)
def test_diff_says_what_is_wrong_with_a_file_that_is_no_schema(
    ottla: Shell, subject: str, tmp_path: Path, file: str, text: str
) -> None:
    valid = {".avsc": '"string"', ".json": "{}", ".proto": 'syntax = "proto3"; message A {}'}[Path(file).suffix]
    (tmp_path / f"valid{Path(file).suffix}").write_text(valid)
    ottla("schemas", "register", subject, f"valid{Path(file).suffix}")
    (tmp_path / file).write_text(text)
    told = ottla("schemas", "diff", subject, "--file", file, fails=1)
    assert told.startswith(f"ottla: {file} is no schema of type ")


def test_diff_knows_the_other_languages(ottla: Shell, subject: str, tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "int"}, {"name": "note", "type": "string"}]
    record = {"type": "record", "name": "Order", "fields": fields}
    (tmp_path / "v1.avsc").write_text(json.dumps(record))
    fields[0]["type"] = "long"
    (tmp_path / "v2.avsc").write_text(json.dumps({**record, "fields": fields[:1]}))
    for file in ("v1.avsc", "v2.avsc"):
        ottla("schemas", "register", subject, file)
    lines = ottla("schemas", "diff", subject, "1", "2").splitlines()
    assert lines[1:5] == [
        "  ~ id: type int → long",
        "  - note: string",
        "BACKWARD yes: version 2 reads what was written with version 1",
        "FORWARD  no: version 1 does not read all that was written with version 2",
    ]


def test_a_version_is_deleted_softly_and_then_for_good(ottla: Shell, subject: str) -> None:
    ottla("schemas", "register", subject, "person.json")
    ottla("schemas", "register", subject, "mail.json")
    assert "version 1 deleted softly" in ottla("schemas", "delete", subject, "1")
    assert ottla.json("schemas", "show", subject)["versions"] == [2]
    assert ottla.json("schemas", "delete", subject, "--permanent")["permanent"] is True
    gone = ottla("schemas", "show", subject, fails=1)
    assert "error code 40401" in gone
    assert "`ottla schemas list` shows what there is" in gone


def test_subjects_are_copied_with_ids_versions_and_what_they_refer_to(
    ottla: Shell, subject: str, registries: list[str], tmp_path: Path
) -> None:
    ottla("schemas", "register", f"{subject}-common", "person.json")
    (tmp_path / "team.json").write_text(json.dumps({"type": "array", "items": {"$ref": "person.json"}}))
    reference = f"person.json={subject}-common:1"
    ottla("schemas", "register", subject, "team.json", "--reference", reference)
    ottla("schemas", "delete", f"{subject}-common", "1", fails=1)
    here = [ottla.json("schemas", "show", name) for name in (f"{subject}-common", subject)]

    planned = ottla.json("schemas", "copy", subject, "--to", registries[1], "--dry-run")["copied"]
    assert [(each["subject"], each["id"]) for each in planned] == [(s["subject"], s["id"]) for s in here]
    for _ in range(2):
        copied = ottla.json("schemas", "copy", subject, "--to", registries[1])
    assert (copied["copied"], copied["there_already"]) == ([], 2)
    there = [ottla.json("schemas", "show", s["subject"], "-r", registries[1]) for s in here]
    kept = ("subject", "version", "id", "guid", "schema")
    assert [[s[name] for name in kept] for s in there] == [[s[name] for name in kept] for s in here]
    assert urlsplit(registries[1]).port != urlsplit(registries[0]).port


def test_nothing_is_copied_if_something_else_is_there(ottla: Shell, subject: str, registries: list[str]) -> None:
    """In a context of its own, as ids are: else the other copy would find this one in its way."""
    here, other = (f":.conflict:{subject}{each}" for each in ("", "-other"))
    ottla("schemas", "register", here, "person.json")
    ottla("schemas", "register", here, "narrower.json", "-r", registries[1])
    ottla("schemas", "register", other, "person.json")
    refused = ottla("schemas", "copy", here, other, "--to", registries[1], fails=1)
    assert "nothing was copied" in refused
    assert f"{here} version 1: id 1 there, id 1 here, or another schema" in refused
    assert f"{other} version 1: id 1 is another schema there" in refused
