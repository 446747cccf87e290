"""What the machine can be told to do. Names are whole: `:.ctx:subject`, GLOBAL for what holds for all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.registry.entities import Metadata, RuleSet
from ottla.registry.schemas.base import Reference

Tags = Mapping[str, frozenset[str]]
"""By the path of what carries them."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A schema as a client sends it."""

    text: str
    """Empty: the latest one's, where a schema is registered."""
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None


@dataclass(frozen=True, slots=True)
class Register:
    subject: str
    schema: Sent
    id: int | None = None
    """As they are in the registry that the schema comes from: for imports."""
    version: int = 0
    """0: the next one."""
    normalize: bool = False
    force: bool = False
    """Compatible or not."""
    tags_to_add: Tags = field(default_factory=dict)
    tags_to_remove: Tags = field(default_factory=dict)
    propagate_tags: bool = False


@dataclass(frozen=True, slots=True)
class ModifyTags:
    subject: str
    version: int
    new_version: int = 0
    tags_to_add: Tags = field(default_factory=dict)
    tags_to_remove: Tags = field(default_factory=dict)
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteVersion:
    subject: str
    version: int
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class DeleteSubject:
    subject: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class PutConfig:
    subject: str
    changes: Mapping[str, Any]
    """By the field of ConfigValue; None takes a key away."""


@dataclass(frozen=True, slots=True)
class DeleteConfig:
    subject: str


@dataclass(frozen=True, slots=True)
class PutMode:
    subject: str
    mode: str | None
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteMode:
    subject: str
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class DeleteContext:
    context: str


Command = (
    Register
    | ModifyTags
    | DeleteVersion
    | DeleteSubject
    | PutConfig
    | DeleteConfig
    | PutMode
    | DeleteMode
    | DeleteContext
)
