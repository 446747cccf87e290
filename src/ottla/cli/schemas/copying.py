"""`ottla schemas copy`: subjects of one registry into another, with their ids and versions.

First everything is read and compared, and if anything stands in the way nothing is written. Then each subject is put
into mode IMPORT, its versions are written in the order in which they refer to each other, and the mode is put back.
Versions that are there already are left out, so that a copy that broke off may be begun again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ottla.cli.failures import Failure
from ottla.cli.output import counted, note, show_json
from ottla.cli.parser import Arguments, UsageError
from ottla.cli.reach import output
from ottla.cli.schemas.remote import Remote, at, registry, subject_path, version_path

KEPT = ("schema", "schemaType", "references", "metadata", "ruleSet", "id", "version")
"""Of a schema."""


@dataclass(slots=True)
class Plan:
    writes: list[dict[str, Any]] = field(default_factory=list)
    """Versions, each after those it refers to."""
    there_already: int = 0
    in_the_way: list[str] = field(default_factory=list)


def copy(arguments: Arguments) -> int:
    source, given = registry(arguments), arguments.optional("to")
    if given is None:
        raise UsageError("--to URL is missing: the registry to copy into")
    target = at(given, arguments)
    schemas = _chosen(source, arguments.texts("subject"))
    plan = planned(target, schemas)
    if plan.in_the_way:
        raise Failure(f"nothing was copied: {target} has others there\n" + "\n".join(f"  {x}" for x in plan.in_the_way))
    if not arguments.flag("dry_run"):
        _write(target, plan)
        _copy_configs(source, target, [*dict.fromkeys(each["subject"] for each in schemas)])
    _report(arguments, target, plan)
    return 0


def _report(arguments: Arguments, target: Remote, plan: Plan) -> None:
    written = [{"subject": s["subject"], "version": s["version"], "id": s["id"]} for s in plan.writes]
    if output(arguments) == "json":
        show_json({"to": str(target), "copied": written, "there_already": plan.there_already})
        return
    for each in written:
        print(f"{each['subject']}: version {each['version']}, id {each['id']}")
    done = "to be copied" if arguments.flag("dry_run") else "copied"
    note(f"{counted(len(written), 'version')} {done} to {target}, {plan.there_already} there already")


# -- what is there -----------------------------------------------------------------------------------------------------


def _chosen(source: Remote, subjects: list[str]) -> list[dict[str, Any]]:
    """All versions of the subjects that were named (all, if none was), and whatever they refer to."""
    wanted = subjects or [str(subject) for subject in source.get("/subjects")]
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for subject in wanted:
        for version in source.get(f"{subject_path(subject)}/versions"):
            _read(source, subject, int(version), found)
    return _in_order(found)


def _read(source: Remote, subject: str, version: int, found: dict[tuple[str, int], dict[str, Any]]) -> None:
    todo = [(subject, version)]
    while todo:
        key = todo.pop()
        if key not in found:
            schema = found[key] = source.get(version_path(*key), deleted=True)
            todo += [(r["subject"], int(r["version"])) for r in schema.get("references") or ()]


def _in_order(found: dict[tuple[str, int], dict[str, Any]]) -> list[dict[str, Any]]:
    """By id, but each after what it refers to."""
    ordered: dict[tuple[str, int], dict[str, Any]] = {}
    todo = sorted(found, key=lambda key: (-int(found[key]["id"]), key[0], -key[1]))
    entered: set[tuple[str, int]] = set()
    while todo:
        key = todo.pop()
        if key in ordered:
            continue
        needed = [(r["subject"], int(r["version"])) for r in found[key].get("references") or ()]
        missing = [each for each in needed if each not in ordered and each not in entered]
        if missing:
            entered.add(key)
            todo += [key, *missing]
        else:
            ordered[key] = found[key]
    return list(ordered.values())


def planned(target: Remote, schemas: list[dict[str, Any]]) -> Plan:
    plan = Plan()
    ids: dict[int, str | None] = {}
    for schema in schemas:
        there = target.find(version_path(schema["subject"], schema["version"]), deleted=True)
        name = f"{schema['subject']} version {schema['version']}"
        if there is not None and (there["id"], there["schema"]) == (schema["id"], schema["schema"]):
            plan.there_already += 1
            continue
        if there is not None:
            plan.in_the_way.append(f"{name}: id {there['id']} there, id {schema['id']} here, or another schema")
            continue
        if schema["id"] not in ids:
            used = target.find(f"/schemas/ids/{schema['id']}", subject=schema["subject"])
            ids[schema["id"]] = None if used is None else used["schema"]
        if ids[schema["id"]] not in (None, schema["schema"]):
            plan.in_the_way.append(f"{name}: id {schema['id']} is another schema there")
        else:
            plan.writes.append(schema)
    return plan


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(target: Remote, plan: Plan) -> None:
    subjects = [*dict.fromkeys(schema["subject"] for schema in plan.writes)]
    with _importing(target, subjects):
        for schema in plan.writes:
            body = {name: schema[name] for name in KEPT if schema.get(name) is not None}
            target.ask("POST", f"{subject_path(schema['subject'])}/versions", body)


@contextmanager
def _importing(target: Remote, subjects: list[str]) -> Iterator[None]:
    """Modes are put back whatever happens. `force`: what is there already is the same, that was looked at."""
    before: dict[str, str | None] = {}
    try:
        for subject in subjects:
            path = f"/mode/{quote(subject, safe='')}"
            mode = target.find(path)
            target.ask("PUT", path, {"mode": "IMPORT"}, force=True)
            before[path] = None if mode is None else mode["mode"]
        yield
    finally:
        for path, mode in before.items():
            if mode is None:
                target.ask("DELETE", path)
            else:
                target.ask("PUT", path, {"mode": mode}, force=True)


def _copy_configs(source: Remote, target: Remote, subjects: list[str]) -> None:
    for subject in subjects:
        path = f"/config/{quote(subject, safe='')}"
        config = source.find(path)
        if config:
            level = config.pop("compatibilityLevel", None)
            target.ask("PUT", path, {**config, **({"compatibility": level} if level else {})})
