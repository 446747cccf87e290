"""`ottla schemas register` and `check`: a schema of a file, for a subject."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ottla.cli.failures import Failure
from ottla.cli.files import text_of
from ottla.cli.output import show_json
from ottla.cli.parser import Arguments, UsageError
from ottla.cli.reach import output
from ottla.cli.schemas.remote import Refused, registry, subject_path, version_path

BY_SUFFIX: Final = {".avsc": "AVRO", ".avro": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
INCOMPATIBLE: Final = (409, 40901)


def register(arguments: Arguments) -> int:
    remote, subject = registry(arguments), arguments.text("subject")
    body = schema_of(arguments)
    normalize = True if arguments.flag("normalize") else None
    try:
        answer = remote.ask("POST", f"{subject_path(subject)}/versions", body, normalize=normalize)
    except Refused as refused:
        if refused.code not in INCOMPATIBLE:
            raise
        reasons = _reasons(remote.ask("POST", _compatibility(subject, "all"), body, verbose=True))
        told = "\n".join(f"  {reason}" for reason in reasons) or f"  {refused.message}"
        raise Failure(f"{subject}: the schema is not compatible with an earlier one\n{told}") from None
    if "version" not in answer:  # servers before 7.5 tell the id alone
        answer |= remote.ask("POST", subject_path(subject), body, normalize=normalize)
    if output(arguments) == "json":
        show_json(answer)
    else:
        print(f"{subject}: version {answer['version']}, id {answer['id']}")
    return 0


def check(arguments: Arguments) -> int:
    """1 if it is not compatible."""
    remote, subject = registry(arguments), arguments.text("subject")
    against = arguments.text("against")
    normalize = True if arguments.flag("normalize") else None
    answer = remote.ask(
        "POST", _compatibility(subject, against), schema_of(arguments), verbose=True, normalize=normalize
    )
    is_compatible = bool(answer["is_compatible"])
    if output(arguments) == "json":
        show_json(answer)
    elif is_compatible:
        print(f"{subject}: compatible with {_versions(against)}")
    else:
        print(f"{subject}: not compatible with {_versions(against)}")
        for reason in _reasons(answer):
            print(f"  {reason}")
    return 0 if is_compatible else 1


def schema_of(arguments: Arguments) -> dict[str, Any]:
    """The body that registering, checking and finding have in common."""
    file = arguments.text("file")
    text = text_of(file)
    language = arguments.optional("type") or BY_SUFFIX.get(Path(file).suffix)
    if language is None:
        raise UsageError(f"{file}: --type AVRO, JSON or PROTOBUF is needed, as its name does not tell")
    body: dict[str, Any] = {"schema": text, "schemaType": language}
    if references := [_reference(given) for given in arguments.texts("reference")]:
        body["references"] = references
    return body


def _reference(given: str) -> dict[str, Any]:
    name, equals, target = given.rpartition("=")
    subject, colon, version = target.rpartition(":")
    if not (equals and colon and name and subject and version.lstrip("-").isdigit()):
        raise UsageError(f"--reference {given}: NAME=SUBJECT:VERSION is expected, such as common.proto=common:1")
    return {"name": name, "subject": subject, "version": int(version)}


def _compatibility(subject: str, against: str) -> str:
    path = f"/compatibility{subject_path(subject)}/versions"
    return path if against == "all" else f"/compatibility{version_path(subject, against)}"


def _versions(against: str) -> str:
    return {"all": "the versions that its level names", "latest": "the latest version"}.get(
        against, f"version {against}"
    )


def _reasons(answer: dict[str, Any]) -> list[str]:
    """What people need of a registry's messages: not the whole old schema."""
    return [message for message in answer.get("messages") or () if not message.startswith("{oldSchema: ")]
