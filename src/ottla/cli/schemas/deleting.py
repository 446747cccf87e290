"""`ottla schemas delete`: softly, or for good."""

from __future__ import annotations

from typing import Any

from ottla.cli.output import show_json
from ottla.cli.parser import Arguments
from ottla.cli.reach import output
from ottla.cli.schemas.remote import Refused, Remote, registry, subject_path, version_path

DELETED_ALREADY = (40404, 40406)


def delete(arguments: Arguments) -> int:
    remote, subject = registry(arguments), arguments.text("subject")
    version = arguments.optional("version")
    path = subject_path(subject) if version is None else version_path(subject, version)
    permanent = arguments.flag("permanent")
    gone = _softly(remote, path, permanent)
    if permanent:
        gone = remote.ask("DELETE", path, permanent=True)
    versions = gone if isinstance(gone, list) else [gone]
    if output(arguments) == "json":
        show_json({"subject": subject, "versions": versions, "permanent": permanent})
    else:
        how = "deleted for good" if permanent else "deleted softly: --permanent removes it for good"
        print(f"{subject}: version {', '.join(map(str, versions))} {how}")
    return 0


def _softly(remote: Remote, path: str, permanent: bool) -> Any:
    """Nothing is removed for good that was not deleted softly before."""
    try:
        return remote.ask("DELETE", path)
    except Refused as refused:
        if permanent and refused.code in DELETED_ALREADY:
            return []
        raise
