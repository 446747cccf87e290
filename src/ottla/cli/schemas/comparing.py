"""`ottla schemas diff`: what changed between two versions, field by field, and who can read what then."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote

from ottla.cli.failures import Failure
from ottla.cli.output import counted, show_json
from ottla.cli.parser import Arguments, UsageError
from ottla.cli.reach import output
from ottla.cli.schemas.remote import Remote, registry, subject_path, version_path

MAX_REFERENCES: Final = 1000


@dataclass(frozen=True, slots=True)
class Change:
    kind: Literal["added", "removed", "changed", "renamed"]
    field: str
    what: str = ""
    """Of the field: its type, its default; "" if the field itself came or went."""
    before: str | None = None
    after: str | None = None


def diff(arguments: Arguments) -> int:
    remote, subject = registry(arguments), arguments.text("subject")
    old, new = _two(remote, subject, arguments)
    languages = old.get("schemaType", "AVRO"), new.get("schemaType", "AVRO")
    if languages[0] != languages[1]:
        raise Failure(f"{subject}: {_name(old)} is {languages[0]}, {_name(new)} is {languages[1]}: nothing to compare")
    verdicts = _verdicts(remote, subject, old, new)
    changes = changes_between(languages[0], old["schema"], new["schema"])
    if output(arguments) == "json":
        shown: list[Any] = [_record(change) for change in changes]
        both = {name: None if found is None else list(found) for name, found in verdicts.items()}
        show_json({"subject": subject, "from": _name(old), "to": _name(new), "changes": shown, "refusals": both})
        return 0
    print(f"{subject} ({languages[0]}): {_name(old)} → {_name(new)}, {counted(len(changes), 'change')}")
    for change in changes:
        print(f"  {told(change)}")
    for level, refusals in verdicts.items():
        _tell_verdict(level, refusals, _name(old), _name(new))
    return 0


def changes_between(language: str, old: str, new: str) -> list[Change]:
    from ottla.cli.schemas.fields import FIELDS_OF

    before, after = FIELDS_OF[language](old), FIELDS_OF[language](new)
    changes: list[Change] = []
    gone = {path: said for path, said in before.items() if path not in after}
    come = {path: said for path, said in after.items() if path not in before}
    if language == "PROTOBUF":
        changes += _renamed(gone, come)
    for path in (*before, *(path for path in after if path not in before)):
        if path in gone:
            changes.append(Change("removed", path, before=_all(before[path])))
        elif path in come:
            changes.append(Change("added", path, after=_all(after[path])))
        elif path in before and path in after:
            changes += _said_otherwise(path, before[path], after[path])
    return changes


def _renamed(gone: dict[str, dict[str, str]], come: dict[str, dict[str, str]]) -> list[Change]:
    """A field of Protobuf is its number. Takes out of both what was only renamed."""
    changes = []
    for path, said in list(gone.items()):
        holder = path.rpartition(".")[0]
        twin = next(
            (p for p, s in come.items() if s == said and "number" in s and p.rpartition(".")[0] == holder), None
        )
        if twin is not None:
            del gone[path], come[twin]
            changes.append(Change("renamed", path, before=path, after=twin))
    return changes


def _said_otherwise(path: str, before: dict[str, str], after: dict[str, str]) -> list[Change]:
    names = [*before, *(name for name in after if name not in before)]
    return [
        Change("changed", path, name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _all(said: dict[str, str]) -> str:
    first = said.get("type", "")
    return ", ".join(filter(None, (first, *(f"{name} {value}" for name, value in said.items() if name != "type"))))


def told(change: Change) -> str:
    at = change.field or "the schema"
    match change.kind:
        case "added":
            return f"+ {at}: {change.after}" if change.after else f"+ {at}"
        case "removed":
            return f"- {at}: {change.before}" if change.before else f"- {at}"
        case "renamed":
            return f"~ {change.before} → {change.after} (renamed)"
        case "changed":
            before, after = change.before or "none", change.after or "none"
            return f"~ {at}: {change.what} {before} → {after}"


def _record(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "field": change.field,
        "what": change.what,
        "before": change.before,
        "after": change.after,
    }


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("file") or f"version {schema['version']}")


# -- which two ---------------------------------------------------------------------------------------------------------


def _two(remote: Remote, subject: str, arguments: Arguments) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = arguments.optional("from"), arguments.optional("to")
    if arguments.has("file"):
        if second is not None:
            raise UsageError("--file is compared with one version: leave TO out")
        from ottla.cli.schemas.registering import schema_of

        old = remote.get(version_path(subject, first or "latest"))
        return old, {**schema_of(arguments), "file": arguments.text("file")}
    versions = [int(version) for version in remote.get(f"{subject_path(subject)}/versions")]
    if second is None and first is None and len(versions) < 2:
        raise Failure(f"{subject} has version {versions[0]} only; --file FILE compares it with a file")
    new = second or (versions[-1] if first is None else "latest")
    old_version = first or versions[-2]
    return remote.get(version_path(subject, old_version)), remote.get(version_path(subject, new))


# -- who can read what -------------------------------------------------------------------------------------------------


def _verdicts(
    remote: Remote, subject: str, old: dict[str, Any], new: dict[str, Any]
) -> dict[str, tuple[str, ...] | None]:
    """Why not, by direction; empty: it can. None: nobody here can tell."""
    from ottla.registry.languages import LANGUAGES
    from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema, Policy, TooComplex

    config = remote.find(f"/config/{quote(subject, safe='')}", defaultToGlobal=True) or {}
    policy: Policy = "LENIENT" if config.get("compatibilityPolicy") == "LENIENT" else "STRICT"
    nobody: dict[str, tuple[str, ...] | None] = {"BACKWARD": None, "FORWARD": None}
    try:
        language = LANGUAGES[old.get("schemaType", "AVRO")]()
    except InvalidSchema:  # its library is not here
        return nobody
    try:
        older = language.parse(old["schema"], _resolved(remote, old), Budget(DEFAULT_STEPS), new=False)
        newer = language.parse(new["schema"], _resolved(remote, new), Budget(DEFAULT_STEPS), new="file" in new)
        backward = newer.reading(older, policy, Budget(DEFAULT_STEPS))
        forward = older.reading(newer, policy, Budget(DEFAULT_STEPS))
    except InvalidSchema as error:
        if "file" in new:  # a registered one was valid to somebody; of a file nobody has said so yet
            raise Failure(f"{new['file']} is no schema of type {new['schemaType']}: {error}") from error
        return nobody
    except TooComplex:
        return nobody
    return {
        "BACKWARD": tuple(_told(each.worded("new", "old"), each.hint) for each in backward),
        "FORWARD": tuple(_told(each.worded("old", "new"), each.hint) for each in forward),
    }


def _told(text: str, hint: str) -> str:
    return f"{text}\n      {hint}" if hint else text


def _resolved(remote: Remote, schema: dict[str, Any]) -> list[Any]:
    """What a schema refers to, directly or not, each before whoever refers to it."""
    from ottla.registry.schemas.base import Reference, Resolved

    found: dict[tuple[str, int], Any] = {}
    texts: dict[tuple[str, int], dict[str, Any]] = {}
    left = [(reference, False) for reference in reversed(schema.get("references") or ())]
    while left:
        given, is_done = left.pop()
        reference = Reference(given["name"], given["subject"], int(given["version"]))
        key = reference.subject, reference.version
        if is_done:
            found.setdefault(key, Resolved(reference, texts[key]["schema"]))
        elif key not in texts and len(texts) < MAX_REFERENCES:
            texts[key] = remote.get(version_path(*key), deleted=True)
            left.append((given, True))
            left += [(inner, False) for inner in reversed(texts[key].get("references") or ())]
    return list(found.values())


def _tell_verdict(level: str, refusals: tuple[str, ...] | None, old: str, new: str) -> None:
    reader, writer = (new, old) if level == "BACKWARD" else (old, new)
    if refusals is None:
        print(f"{level:<9}unknown: the two could not be compared here")
    elif not refusals:
        print(f"{level:<9}yes: {reader} reads what was written with {writer}")
    else:
        print(f"{level:<9}no: {reader} does not read all that was written with {writer}")
        for refusal in refusals:
            print(f"    {refusal}")
