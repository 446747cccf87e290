"""The transforms of a connector, one after the other, over batches: what comes out is a record, nothing, or a failure.

A chain is made once, of the keys `transforms`, `transforms.<alias>.*`, `predicates` and `predicates.<alias>.*`. A
record that fails at a stage goes no further; the others do.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.connect.data.errors import java_class_of
from ottla.connect.data.record import ConnectRecord
from ottla.connect.definitions import BOOLEAN, LOW, ConfigError, ConfigKey
from ottla.connect.plugins import Catalogue, Plugin, PluginType
from ottla.connect.predicates.base import Predicate
from ottla.connect.transforms.base import Transform

STAGE: Final = "TRANSFORMATION"
_NEGATE: Final = ConfigKey("negate", BOOLEAN, False, LOW, "")


class Failed(NamedTuple):
    """What a dead letter says of a record that a stage could not take."""

    stage: str
    class_name: str
    error: Exception

    @property
    def exception_class(self) -> str:
        return java_class_of(self.error)


Outcome: TypeAlias = ConnectRecord | Failed | None


class Stage(NamedTuple):
    """`concerns` says of which records; without it, of all."""

    alias: str
    class_name: str
    apply: Callable[[ConnectRecord], ConnectRecord | None]
    concerns: Callable[[ConnectRecord], bool] | None = None
    negate: bool = False


class Chain:
    """Compiled once per connector and task."""

    __slots__ = ("stages",)

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = tuple(stages)

    @classmethod
    def of(cls, given: Mapping[str, str | None], catalogue: Catalogue) -> "Chain":
        """Raises ConfigError."""
        return cls([_stage(alias, given, catalogue) for alias in _aliases(given, "transforms")])

    def run(self, records: Sequence[ConnectRecord]) -> list[Outcome]:
        """One outcome for each record, in order."""
        outcomes: list[Outcome] = list(records)
        for stage in self.stages:
            apply, concerns, negate = stage.apply, stage.concerns, stage.negate
            for index, record in enumerate(outcomes):
                if type(record) is not ConnectRecord:
                    continue
                try:
                    if concerns is None or concerns(record) is not negate:
                        outcomes[index] = apply(record)
                except Exception as error:  # noqa: BLE001  a user's transform may raise anything: it is the record's fault
                    outcomes[index] = Failed(STAGE, stage.class_name, error)
        return outcomes


def _aliases(given: Mapping[str, str | None], key: str) -> list[str]:
    aliases = [part.strip() for part in (given.get(key) or "").split(",")]
    return [alias for alias in aliases if alias]


def _under(given: Mapping[str, str | None], prefix: str) -> dict[str, str | None]:
    return {key[len(prefix) :]: value for key, value in given.items() if key.startswith(prefix)}


def _stage(alias: str, given: Mapping[str, str | None], catalogue: Catalogue) -> Stage:
    own = _under(given, f"transforms.{alias}.")
    row = _row(catalogue, own.get("type"), PluginType.TRANSFORMATION, f"transforms.{alias}.type")
    transform: Transform = _loaded(row)(own)
    negate = _NEGATE.convert(own["negate"]) if own.get("negate") is not None else False
    named = own.get("predicate")
    if not named:
        return Stage(alias, row.class_name, transform.apply)
    if named not in _aliases(given, "predicates"):
        raise ConfigError.of(f"transforms.{alias}.predicate", named, f"No predicate has the alias {named}")
    inner = _under(given, f"predicates.{named}.")
    predicate_row = _row(catalogue, inner.get("type"), PluginType.PREDICATE, f"predicates.{named}.type")
    predicate: Predicate = _loaded(predicate_row)(inner)
    return Stage(alias, row.class_name, transform.apply, predicate.test, bool(negate))


def _row(catalogue: Catalogue, name: str | None, kind: PluginType, key: str) -> Plugin:
    found = None if name is None else catalogue.find(name, kind)
    if found is None:
        why = "" if name is None else catalogue.why_not(name, kind)
        raise ConfigError.of(key, name, f"Class {name} could not be found.{why}")
    return found


def _loaded(row: Plugin) -> Callable[[Mapping[str, str | None]], Any]:
    loaded: Callable[[Mapping[str, str | None]], Any] = row.load()
    return loaded
