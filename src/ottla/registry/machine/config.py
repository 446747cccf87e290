"""Config of subjects, contexts and of all: what is set, what is in force, and how a change is laid over it."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ottla.registry.entities import ConfigValue
from ottla.registry.machine import modes, records, refusals, rules
from ottla.registry.machine.commands import DeleteConfig, PutConfig
from ottla.registry.machine.names import EVERYWHERE, GLOBAL, context_key, context_of, has_control_characters
from ottla.registry.machine.state import State

LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
POLICIES: Final = ("STRICT", "LENIENT", "LOGICAL")
_KEYS: Final = tuple(name for name in ConfigValue.__struct_fields__ if name != "subject")


def scopes(subject: str) -> Iterator[str]:
    """Where config and mode of a subject are looked for, nearest first."""
    yield subject
    context = context_key(context_of(subject))
    if context != subject:
        yield context
    if subject != EVERYWHERE:
        yield EVERYWHERE


def in_force(state: State, subject: str, default_level: str) -> ConfigValue:
    """Each key from the nearest scope that sets it. The default context's global config is not for other contexts."""
    found: dict[str, Any] = {}
    for scope in scopes(subject):
        value = state.configs.get(scope)
        if value is not None:
            for name in _KEYS:
                if name not in found and (said := getattr(value, name)) is not None:
                    found[name] = said
    # An alias is one subject's name for another, nothing to inherit.
    own = state.configs.get(subject)
    found["alias"] = own.alias if own is not None and subject != GLOBAL else None
    found.setdefault("compatibility_level", default_level)
    return ConfigValue(**found)


def own(state: State, subject: str, default_level: str) -> ConfigValue | None:
    """What is set on a subject; the level is told even if only other keys are set. None: nothing is."""
    found = state.configs.get(subject)
    if found is None:
        return ConfigValue(compatibility_level=default_level) if subject == GLOBAL else None
    return msgspec.structs.replace(found, subject=None, compatibility_level=found.compatibility_level or default_level)


def decide_put(state: State, command: PutConfig) -> records.Decision[ConfigValue]:
    """The reply is the merged set."""
    if has_control_characters(command.subject):
        raise refusals.invalid_subject(command.subject)
    modes.check_writable(state, command.subject)
    changes = dict(command.changes)
    level = changes.get("compatibility_level")
    if level is not None:
        if str(level).upper() not in LEVELS:
            raise refusals.invalid_level()
        changes["compatibility_level"] = str(level).upper()
    policy = changes.get("compatibility_policy")
    if policy is not None:
        changes["compatibility_policy"] = str(policy).upper() if str(policy).upper() in POLICIES else None
    rules.check(changes.get("default_rule_set"))
    rules.check(changes.get("override_rule_set"))
    before = state.configs.get(command.subject, ConfigValue())
    merged = msgspec.structs.replace(before, **changes, subject=command.subject or None)
    put: list[records.Record] = [records.ConfigPut(command.subject, merged)]
    if command.subject == GLOBAL and records.ConfigPut in state.old_form:
        put.append(records.ConfigGone(GLOBAL, old_form=True))
    return records.Decision(msgspec.structs.replace(merged, subject=None), tuple(put))


def decide_delete(state: State, command: DeleteConfig, default_level: str) -> records.Decision[ConfigValue]:
    """The reply is what was set."""
    found = own(state, command.subject, default_level)
    if found is None:
        raise refusals.subject_not_found(command.subject)
    modes.check_writable(state, command.subject)
    return records.Decision(found, tuple(gone(state, command.subject)))


def gone(state: State, subject: str) -> list[records.Record]:
    """The records that take a subject's config away."""
    found: list[records.Record] = [records.ConfigGone(subject)] if subject in state.configs else []
    if subject == GLOBAL and records.ConfigPut in state.old_form:
        found.append(records.ConfigGone(GLOBAL, old_form=True))
    return found
