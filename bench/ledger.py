"""What was measured last, workload by workload: the published page is made of it.

Both servers take turns within one workload, so a workload is the unit that has to be measured in one run; a whole bench
takes an hour, and a machine is rarely idle for so long.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measures import Measure, Metric, Target


@dataclass(frozen=True, slots=True)
class Entry:
    """One workload's last run in full."""

    day: str
    commit: str
    busy: float
    """The share of the machine that others used before it began."""
    rounds: int
    facts: tuple[str, ...]
    measures: tuple[Measure, ...]
    finished: bool = True
    """Why one did not is printed when it happens and kept nowhere: the reason may name places of the machine."""


Ledger = dict[str, Entry]


def read(path: Path) -> Ledger:
    if not path.exists():
        return {}
    return {name: _entry(fields) for name, fields in json.loads(path.read_text()).items()}


def write(path: Path, ledger: Mapping[str, Entry], order: Sequence[str]) -> None:
    known = {name: asdict(ledger[name]) for name in order if name in ledger}
    path.write_text(json.dumps(known, indent=1) + "\n")


def _entry(fields: dict[str, Any]) -> Entry:
    return Entry(
        fields["day"],
        fields["commit"],
        fields["busy"],
        fields["rounds"],
        tuple(fields["facts"]),
        tuple(_measure(each) for each in fields["measures"]),
        fields["finished"],
    )


def _measure(fields: dict[str, Any]) -> Measure:
    metric = fields["metric"]
    target = None if metric["target"] is None else Target(**metric["target"])
    known = Metric(metric["key"], metric["title"], metric["unit"], target)
    return Measure(fields["workload"], known, tuple(fields["kafka"]), tuple(fields["ottla"]))
