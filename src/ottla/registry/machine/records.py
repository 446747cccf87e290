"""What the machine writes and replays: the records of `_schemas`. `journal.codec` has their bytes.

Those with `old_form` lie under the global key as it was written up to 6.1, and by Karapace (`"subject":null`).
"""

from dataclasses import dataclass

from ottla.model import core
from ottla.model.core import ReplyT_co
from ottla.registry.entities import ConfigValue, Kept, Mode, SchemaValue


@dataclass(frozen=True, slots=True)
class SchemaPut:
    value: SchemaValue


@dataclass(frozen=True, slots=True)
class SchemaGone:
    """A tombstone: the version is deleted for good."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ConfigPut:
    subject: str
    """A subject, a context (`:.ctx:`), or GLOBAL."""
    value: ConfigValue
    old_form: bool = False


@dataclass(frozen=True, slots=True)
class ConfigGone:
    subject: str
    old_form: bool = False


@dataclass(frozen=True, slots=True)
class ModePut:
    subject: str
    mode: Mode
    old_form: bool = False


@dataclass(frozen=True, slots=True)
class ModeGone:
    subject: str
    old_form: bool = False


@dataclass(frozen=True, slots=True)
class SubjectDeleted:
    """Versions up to this one are deleted, softly."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SubjectCleared:
    """What is deleted softly under this name, or in this context, is forgotten: an import begins."""

    subject: str


@dataclass(frozen=True, slots=True)
class ContextPut:
    context: str


@dataclass(frozen=True, slots=True)
class ContextGone:
    context: str


@dataclass(frozen=True, slots=True)
class Noop:
    """Changes nothing; tells where the topic ends, and what it no longer tells otherwise."""

    kept: Kept | None = None


Record = (
    SchemaPut
    | SchemaGone
    | ConfigPut
    | ConfigGone
    | ModePut
    | ModeGone
    | SubjectDeleted
    | SubjectCleared
    | ContextPut
    | ContextGone
    | Noop
)


class Decision(core.Decision[ReplyT_co, Record]):
    __slots__ = ()
