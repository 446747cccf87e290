"""Who changed what: one line for every write, done or refused, on the logger `ottla.registry.audit`.

Where several registries share the work, the one that was asked says that it passed the write on, and the leader says
what became of it. Schemas and credentials are not told.
"""

import json
import logging
from typing import Any, Final

from ottla.http.auth import Caller
from ottla.registry.machine.commands import (
    Command,
    DeleteConfig,
    DeleteContext,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    ModifyTags,
    PutConfig,
    PutMode,
    Register,
)
from ottla.registry.machine.refusals import Refusal
from ottla.registry.machine.versions import SchemaVersion

logger = logging.getLogger(__name__)

_ACTIONS: Final[dict[type[Command], str]] = {
    Register: "register",
    ModifyTags: "modify-tags",
    DeleteVersion: "delete-version",
    DeleteSubject: "delete-subject",
    PutConfig: "put-config",
    DeleteConfig: "delete-config",
    PutMode: "put-mode",
    DeleteMode: "delete-mode",
    DeleteContext: "delete-context",
}
_GLOBAL: Final = "(global)"


def done(caller: Caller, command: Command, reply: Any) -> None:
    facts = {"version": reply.version, "id": reply.id} if isinstance(reply, SchemaVersion) else {}
    _tell(caller, command, {**facts, "result": "done"})


def refused(caller: Caller, command: Command, refusal: Refusal) -> None:
    _tell(caller, command, {"result": "refused", "status": refusal.status, "error_code": refusal.code})


def passed_on(caller: Caller, command: Command, leader: str, status: int) -> None:
    _tell(caller, command, {"result": "passed on", "leader": leader, "status": status})


def _tell(caller: Caller, command: Command, outcome: dict[str, object]) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    facts = {"principal": caller.principal, "host": caller.host, "action": _ACTIONS[type(command)]}
    logger.info(
        "%s", " ".join(f"{name}={_word(value)}" for name, value in {**facts, **_what(command), **outcome}.items())
    )


def _what(command: Command) -> dict[str, object]:
    match command:
        case DeleteContext(context):
            return {"context": context}
        case DeleteVersion(subject, version, permanent):
            return {"subject": subject, "version": version, "permanent": permanent}
        case DeleteSubject(subject, permanent):
            return {"subject": subject, "permanent": permanent}
        case PutConfig(subject, changes):
            return {"subject": subject or _GLOBAL, "changes": ",".join(changes)}
        case PutMode(subject, mode):
            return {"subject": subject or _GLOBAL, "mode": mode}
        case _:
            return {"subject": command.subject or _GLOBAL}


def _word(value: object) -> str:
    """As it is if it is one word, else quoted: a name must not look like another fact, nor like another line."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    plain = text.isascii() and text.isprintable() and not any(each in text for each in ' "=')
    return text if plain and text else json.dumps(text)
