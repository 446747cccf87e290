"""Names of subjects and contexts: `:.ctx:subject` is the subject in the context `.ctx`; without it the default one."""

from typing import Final

DEFAULT_CONTEXT: Final = "."
EVERYWHERE: Final = ":.__GLOBAL:"
"""Config and mode under this name hold for the subjects of all contexts."""
WILDCARD: Final = ":*:"
"""As a prefix: whatever the context."""
GLOBAL: Final = ""
"""In the machine: the name of the global config and mode."""
_RESERVED: Final = ("", "__GLOBAL", "__EMPTY")


def context_of(subject: str) -> str:
    return split(subject)[0]


def split(subject: str) -> tuple[str, str]:
    """Context and name."""
    if not subject.startswith(":."):
        return DEFAULT_CONTEXT, subject
    end = subject.find(":", 1)
    return (subject[1:], "") if end < 0 else (subject[1:end], subject[end + 1 :])


def qualified(context: str, name: str) -> str:
    return name if context == DEFAULT_CONTEXT else f":{context}:{name}"


def normal(subject: str) -> str:
    """One spelling for each: the default context is not written."""
    context, name = split(subject)
    return qualified(context, name)


def context_key(context: str) -> str:
    """Under which config and mode of a context are kept: for the default one, the global key."""
    return GLOBAL if context == DEFAULT_CONTEXT else f":{context}:"


def shown_context(subject: str) -> str:
    """As Confluent's messages name it."""
    return f":{context_of(subject)}:"


def in_context_of(subject: str, name: str) -> str:
    """A name that is said where `subject` lives: in its context, unless it names one itself."""
    context = context_of(subject)
    if name.startswith(":.") or context == DEFAULT_CONTEXT:
        return normal(name)
    return qualified(context, name)


def normal_context(context: str) -> str:
    """`ctx`, `.ctx` and `:.ctx:` are the same one."""
    bare = context.strip(":")
    return bare if bare.startswith(".") else f".{bare}"


def may_be_registered(subject: str) -> bool:
    """Control characters and the names that stand for something else cannot be a subject's."""
    context, name = split(subject)
    if name in _RESERVED or subject.startswith(WILDCARD) or context == split(EVERYWHERE)[0]:
        return False
    return not has_control_characters(subject)


def has_control_characters(subject: str) -> bool:
    return any(char < " " or "\x7f" <= char <= "\x9f" for char in subject)


def covers(scope: str, subject: str) -> bool:
    """Whether a subject is the scope, or is in the context that the scope names; the global scope covers all."""
    if scope in (GLOBAL, subject):
        return True
    context, name = split(scope)
    return not name and scope.startswith(":.") and context_of(subject) == context
