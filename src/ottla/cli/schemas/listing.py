"""`ottla schemas list` and `show`."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from ottla.cli.output import Table, counted, note, show_json, time_text
from ottla.cli.output import show as show_table
from ottla.cli.parser import Arguments, UsageError
from ottla.cli.reach import output
from ottla.cli.schemas.remote import Remote, registry, subject_path, version_path

LANGUAGES = {"AVRO": "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}


def list_subjects(arguments: Arguments) -> int:
    remote = registry(arguments)
    query = {"subjectPrefix": arguments.optional("prefix"), "deleted": arguments.flag("deleted") or None}
    table = Table("SUBJECT", "TYPE", "LATEST", "VERSIONS", "ID")
    found: dict[str, list[Any]] = {}
    for schema in remote.pages("/schemas", **query):
        found.setdefault(schema["subject"], []).append(schema)
    for subject, versions in sorted(found.items()):
        latest = max(versions, key=lambda schema: int(schema["version"]))
        language = latest.get("schemaType", "AVRO")
        table.add(subject, LANGUAGES.get(language, language), latest["version"], len(versions), latest["id"])
    show_table(table, output(arguments))
    if output(arguments) == "table":
        config, mode = remote.get("/config"), remote.get("/mode")
        level = config.get("compatibilityLevel", config.get("compatibility"))
        note(f"{counted(len(found), 'subject')} at {remote}; compatibility {level}, mode {mode.get('mode')}")
    return 0


def show(arguments: Arguments) -> int:
    remote = registry(arguments)
    by_id, subject = arguments.optional_number("id"), arguments.optional("subject")
    if (by_id is None) == (subject is None):
        raise UsageError("say which schema: SUBJECT [VERSION], or --id ID")
    if subject is None:
        found = {"id": by_id, **remote.get(f"/schemas/ids/{by_id}")}
        found["used_by"] = remote.get(f"/schemas/ids/{by_id}/versions")
    else:
        version = arguments.optional("version") or "latest"
        deleted = True if arguments.flag("deleted") else None
        found = remote.get(version_path(subject, version), deleted=deleted)
        found |= _circumstances(remote, subject, int(found["version"]))
    found.setdefault("schemaType", "AVRO")
    if arguments.flag("raw"):
        print(found["schema"])
    elif output(arguments) == "json":
        show_json(found)
    else:
        print(_told(found))
    return 0


def _circumstances(remote: Remote, subject: str, version: int) -> dict[str, Any]:
    config = remote.find(f"/config/{quote(subject, safe='')}", defaultToGlobal=True) or {}
    return {
        "versions": remote.get(f"{subject_path(subject)}/versions"),
        "compatibility": config.get("compatibilityLevel"),
        "compatibilityPolicy": config.get("compatibilityPolicy"),
        "referenced_by": remote.get(f"{version_path(subject, version)}/referencedby"),
    }


def _told(found: dict[str, Any]) -> str:
    language = found["schemaType"]
    facts = [
        ("subject", found.get("subject")),
        ("version", found.get("version")),
        ("of", ", ".join(map(str, found.get("versions", ())))),
        ("id", found.get("id")),
        ("guid", found.get("guid")),
        ("type", LANGUAGES.get(language, language)),
        ("written", time_text(found["ts"]) if found.get("ts") else None),
        ("compatibility", " ".join(filter(None, (found.get("compatibility"), found.get("compatibilityPolicy"))))),
        ("refers to", ", ".join(f"{r['name']} = {r['subject']}:{r['version']}" for r in found.get("references", ()))),
        ("referred by", ", ".join(f"id {each}" for each in found.get("referenced_by", ()))),
        ("used by", ", ".join(f"{u['subject']}:{u['version']}" for u in found.get("used_by", ()))),
        ("deleted", "softly" if found.get("deleted") else None),
    ]
    lines = [f"{name:<14}{value}" for name, value in facts if value]
    return "\n".join(lines) + "\n\n" + readable(language, found["schema"])


def readable(language: str, text: str) -> str:
    if language == "PROTOBUF":
        return text.rstrip("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
