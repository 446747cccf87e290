"""What there is to do for a source, found out by reading a little; and what its tasks do.

What was read goes along to the task, so nothing is asked of the outside twice, and an idle source costs no batch. While
there is more than that, tasks read for themselves.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.connect.jobs.feed import Work
from ottla.connect.jobs.looking import Pause
from ottla.connect.jobs.reports import Counts, Failed, SourceReport
from ottla.connect.jobs.retrying import Retrying
from ottla.connect.jobs.source_task import LIMIT, PEEK, Part, SourceTask, partition_text
from ottla.connect.jobs.spec import JobSpec, opened_source
from ottla.connect.jobs.standing import Stands
from ottla.connect.jobs.workers import forget, kept
from ottla.connect.spi import Observed, Partition, Read, Source
from ottla.pipelines.sink.writer import Errand, connected
from ottla.pipelines.workers import settle_worker

PARTITIONS_AGE_S: Final = 10.0
"""How late a new source partition may be noticed."""
OBSERVED_AGE_S: Final = 1.0
"""How old metrics of an idle source may be."""
PEEKED_BYTES: Final = 8_000_000
"""What weighs more does not go along with a plan: the task reads it again."""


class Share(NamedTuple):
    """What one task reads."""

    task: int
    parts: Sequence[Part]
    errand: Errand


class _Watched(NamedTuple):
    source: Source[Any]
    partition: Partition


class SourcePlanner:
    """Of one life of the connector. Asked by one thread."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._asked: Source[Any] | None = None
        """Which partitions there are."""
        self._watched: dict[str, _Watched] = {}
        self._listed_at = float("-inf")
        self._next_look: dict[str, float] = {}
        self._observed_at = float("-inf")
        self.observed: Sequence[Observed] = ()
        self.alerts: Sequence[str] = ()

    def look(self, stands: Stands, errands: Mapping[int, Errand], pause: Pause) -> list[Share]:
        self._list()
        self._acknowledge(stands)
        peeked = {} if stands.full else self._peek(stands, pause)
        self._observe()
        return self._shares(stands, peeked, errands) if stands.full or peeked else []

    def rest_s(self) -> float:
        now = time.monotonic()
        times = [self._listed_at + PARTITIONS_AGE_S, *(self._next_look.get(name, now) for name in self._watched)]
        return max(0.0, min(times) - now)

    def close(self) -> None:
        for watched in self._watched.values():
            watched.source.close()
        self._watched.clear()
        self._forget_asked()

    def _observe(self) -> None:
        now = time.monotonic()
        if now - self._observed_at < OBSERVED_AGE_S:
            return
        self._observed_at = now
        sources = [watched.source for watched in self._watched.values()]
        now_ms = time.time_ns() // 1_000_000
        self.observed = [each for source in sources for each in source.observed((), now_ms)]
        self.alerts = [alert for source in sources if (alert := source.alert()) is not None]

    def _list(self) -> None:
        now = time.monotonic()
        if now - self._listed_at < PARTITIONS_AGE_S:
            return
        names = {partition_text(each): each for each in self._partitions()}
        self._listed_at = now
        for gone in [name for name in self._watched if name not in names]:
            self._watched.pop(gone).source.close()
        for name, partition in names.items():
            if name not in self._watched:
                self._watched[name] = _Watched(opened_source(self._spec, partition), partition)

    def _partitions(self) -> Sequence[Partition]:
        """Of an instance that is kept, and once more of a new one: what it holds open may have gone."""
        if self._asked is not None:
            try:
                return self._asked.partitions()
            except Exception:  # noqa: BLE001  a connector may raise anything; if it still holds, it is told below
                self._forget_asked()
        self._asked = opened_source(self._spec)
        return self._asked.partitions()

    def _forget_asked(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            asked.close()

    def _peek(self, stands: Stands, pause: Pause) -> dict[str, Read]:
        """What some partitions have."""
        peeked: dict[str, Read] = {}
        now = time.monotonic()
        for name, watched in self._watched.items():
            if self._next_look.get(name, 0.0) > now and not self._spec.once:
                continue
            start = stands.start(watched.partition)
            if watched.source.is_done(start):
                self._next_look[name] = now + PARTITIONS_AGE_S
                continue
            read = Retrying(self._spec.policy, pause).run(lambda: watched.source.read(start, PEEK))  # noqa: B023
            if read.size or (read.end is not None and read.end != start):
                peeked[name] = read
            if not read.has_more(PEEK):
                self._next_look[name] = now + watched.source.poll_interval_ms() / 1000
        return peeked

    def _shares(self, stands: Stands, peeked: Mapping[str, Read], errands: Mapping[int, Errand]) -> list[Share]:
        named = [(name, watched.partition) for name, watched in self._watched.items() if not peeked or name in peeked]
        tasks = max(1, min(self._spec.tasks, len(named)))
        shares: list[list[Part]] = [[] for _ in range(tasks)]
        for nth, (name, partition) in enumerate(named):
            part = Part(partition, stands.start(partition), stands.key(partition), _light(peeked.get(name)))
            shares[nth % tasks].append(part)
        return [Share(number, share, errands[number]) for number, share in enumerate(shares) if share]

    def _acknowledge(self, stands: Stands) -> None:
        """What is committed is out: those who need to know are told."""
        for watched in self._watched.values():
            at = stands.start(watched.partition)
            if at is not None:
                watched.source.written(at)


def _light(read: Read | None) -> Read | None:
    if read is None or len(pickle.dumps(read, pickle.HIGHEST_PROTOCOL)) > PEEKED_BYTES:
        return None
    return read


def source_work(spec: JobSpec) -> Work:
    """In Spark's workers."""

    def work(share: Share) -> SourceReport:
        settle_worker()
        cluster = connected(share.errand.reach, share.errand.timeout_s)
        try:
            task = kept(SourceTask, spec)
        except Exception as error:  # noqa: BLE001  a connector may raise anything when it is opened
            return SourceReport(share.task, Counts(), failed=Failed.of(error, spec.secrets))
        report = task.run(share.task, share.parts, LIMIT, cluster, share.errand)
        if report.failed is not None:
            forget(spec)
        return report

    return work
