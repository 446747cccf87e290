"""One run: a cluster, its clients, faults for so long, then peace, a final read, and the verdict."""

import contextlib
import json
import random
import re
import shutil
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from ottla.testing.checkers import (
    Action,
    Anomaly,
    ExactlyOnceCopy,
    Kind,
    OneLeaderPerEpoch,
    Operation,
    Promises,
    ReplicasIdentical,
    Verdict,
    WatermarksAdvance,
    judge,
)
from tests.faults.clients import Language, Place, at_hand
from tests.faults.clocks import faketime_library
from tests.faults.cluster import FaultyCluster
from tests.faults.disks import loop_disks_work
from tests.faults.faults import FAULTS, Blow, Fault
from tests.faults.network import Loopback, Namespaces, Network, namespaces_work
from tests.faults.proxies import Proxies
from tests.faults.recorder import Recorder, recorded
from tests.faults.workload import (
    Client,
    Copier,
    Observer,
    Reader,
    WatermarkReader,
    Writer,
    ends,
    origin,
    read_everything,
)

TOPIC, COPY = "load", "copy"
WRITERS = {"librdkafka": 2}
"""Of each language; of others one."""
LIVES_S = {"librdkafka": (None, 15.0)}
"""How long the readers of a language live; of others there is one, for 30 s: its first begins at the beginning."""
MEND_S = 60.0
"""After a fault all replicas must be in sync again within this."""


@dataclass(slots=True)
class Plan:
    """What a run does."""

    flavour: str = "ottla"
    seconds: float = 60.0
    faults: Sequence[str] = ("kill",)
    clients: Sequence[str] = ("librdkafka",)
    """The languages of writers and readers."""
    seed: int = 1
    rate: int = 1000
    """Records a second, of all writers together."""
    partitions: int = 6
    acks: str = "all"
    copy: bool = True
    strikes: int | None = None
    """Ends the run after so many, however long they take."""
    rest_s: tuple[float, float] = (1.0, 4.0)
    """Between two strikes, once everything is in sync."""
    extra: dict[str, str] = field(default_factory=dict)
    secured: bool = False
    """SASL_SSL everywhere, and ACLs."""


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    plan: Plan
    seconds: float
    blows: list[Blow]
    waits: dict[str, list[float]]
    """By language of the clients, for each blow the seconds until every partition had taken a record sent after it."""
    longest: dict[str, list[float]]
    """The same, the longest that a send had to wait from the blow on, until the next blow: a partition may take a
    record that was under way already, and no other for a while."""
    mends: list[float]
    """For each blow, the seconds from its end until all replicas were in sync."""
    verdict: Verdict
    others: list[Anomaly]
    """From the checks that are not about the history."""
    failed_sends: list[str]
    copier_restarts: list[str]
    latencies_ms: dict[str, list[float]]
    """By language, of acknowledged sends, sorted."""
    tracebacks: list[str]

    @property
    def good(self) -> bool:
        return self.verdict.valid and not self.others and not self.tracebacks

    @property
    def worst_waits(self) -> list[float]:
        """For each blow, until clients of all languages could write again."""
        return [max(each) for each in zip(*self.waits.values(), strict=True)]

    def latency_ms(self, share: float) -> float:
        """The slowest language's."""
        return max(quantile(found, share) for found in self.latencies_ms.values())


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest that so large a share does not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def possible(names: Sequence[str]) -> tuple[list[Fault], list[str]]:
    """The faults that can be had here, and what is missing for the others."""
    missing = {
        "disks": "" if loop_disks_work() else "disks of their own need root and mkfs.ext4",
        "clocks": "" if faketime_library() else "libfaketime is not installed",
    }
    able, reasons = [], []
    for name in names:
        reason = missing.get(FAULTS[name].needs, "")
        if reason:
            reasons.append(f"{name} is left out: {reason}")
        else:
            able.append(FAULTS[name])
    return able, reasons


@contextlib.contextmanager
def cluster_for(plan: Plan, directory: Path, faults: Sequence[Fault]) -> Iterator[FaultyCluster]:
    """A cluster built with what its faults need, started, with its topics."""
    needs = {fault.needs for fault in faults}
    network: Network = Loopback(3)
    if "links" in needs:
        network = Namespaces(3) if namespaces_work() else Proxies(3)
    cluster = FaultyCluster(
        plan.flavour,
        directory,
        network,
        loop_disks="disks" in needs,
        faketime=faketime_library() if "clocks" in needs else None,
        extra=plan.extra,
        secured=plan.secured,
    )
    try:
        with cluster.door.open() if cluster.door is not None else contextlib.nullcontext():
            cluster.start()
            cluster.create_topic(TOPIC, plan.partitions)
            if plan.copy:
                cluster.create_topic(COPY, plan.partitions)
            yield cluster
    finally:
        cluster.close()


class Run:
    """The clients of one run, and what they are put through."""

    def __init__(self, plan: Plan, cluster: FaultyCluster, languages: Sequence[Language], directory: Path) -> None:
        self._plan = plan
        self._cluster = cluster
        self._recorder = recorder = Recorder(directory / "history.jsonl")
        self._dice = random.Random(plan.seed)
        bootstrap, count = cluster.bootstrap, plan.partitions
        self._languages = languages
        place = Place(bootstrap, TOPIC, count, directory)
        writing = [language for language in languages for _ in range(WRITERS.get(language.name, 1))]
        rate = plan.rate // len(writing)
        self._writers = [Writer(recorder, language, place, rate=rate, acks=plan.acks) for language in writing]
        self._copier = Copier(recorder, bootstrap, TOPIC, COPY, count, cluster.door) if plan.copy else None
        self._others: list[Client] = [
            *(
                Reader(recorder, language, place, lives_s=lives_s)
                for language in languages
                for lives_s in LIVES_S.get(language.name, (30.0,))
            ),
            WatermarkReader(recorder, bootstrap, TOPIC, count),
            *(Observer(recorder, member, [TOPIC]) for member in cluster.members),
        ]
        if plan.copy:
            self._others.append(WatermarkReader(recorder, bootstrap, COPY, count))
        self._warm = 0
        """Clients have found their leaders; latency is counted from here on."""
        self._blows: list[Blow] = []
        self._mends: list[float] = []

    def go(self, faults: Sequence[Fault]) -> Outcome:
        began = time.monotonic()
        clients = [*self._writers, *self._others, *([self._copier] if self._copier else [])]
        for client in clients:
            client.start()
        written, everywhere = self._recorder.written, self._plan.partitions * len(self._languages)
        self._cluster.wait("the writers write everywhere", lambda: len(written) == everywhere)
        self._warm = time.monotonic_ns()
        try:
            self._strike(faults, time.monotonic())
            self._cluster.heal()
            self._in_sync()
        finally:
            for client in clients:
                if client is not self._copier:
                    client.end()
        try:
            return self._judge(time.monotonic() - began)
        finally:
            self._recorder.close()

    def _strike(self, faults: Sequence[Fault], began: float) -> None:
        topics = [TOPIC, COPY] if self._copier else [TOPIC]
        while time.monotonic() - began < self._plan.seconds:
            if self._plan.strikes is not None and len(self._blows) >= self._plan.strikes:
                return
            time.sleep(self._dice.uniform(*self._plan.rest_s))
            fault = self._dice.choice(faults)
            blow = fault.strike(self._cluster, TOPIC, self._dice)
            self._blows.append(blow)
            print(f"{time.strftime('%H:%M:%S')} {blow.fault}: {blow.story}", end="", flush=True)
            self._mends.append(self._mended(topics))
            print(f"; mended {self._mends[-1]:.1f} s after its end", flush=True)

    def _mended(self, topics: Sequence[str]) -> float:
        """Waits until all partitions take records again and all replicas have them; returns the seconds it took.

        A node that was killed is among the replicas in sync until somebody has noticed: writing comes first.
        """
        over, written = time.monotonic_ns(), self._recorder.written
        self._cluster.wait("all partitions take records", lambda: min(written.values()) > over, MEND_S)
        self._in_sync(*topics)
        return (time.monotonic_ns() - over) / 1e9

    def _in_sync(self, *topics: str) -> float:
        cluster, topics = self._cluster, topics or (TOPIC,)
        return cluster.wait(
            "all replicas are in sync",
            lambda: cluster.in_sync(*topics),
            MEND_S,
            lambda: cluster.out_of_sync(*topics),
        )

    def _judge(self, seconds: float) -> Outcome:
        for client in [*self._writers, *self._others]:
            client.finish()
        copied: dict[int, list[int]] = {}
        if self._copier is not None:
            self._copier.end_at(ends(self._cluster, TOPIC, self._plan.partitions))
            self._copier.join(120)
            self._copier.finish(10)
            copied = read_everything(self._recorder, self._cluster, COPY, self._plan.partitions)
        values = read_everything(self._recorder, self._cluster, TOPIC, self._plan.partitions)
        others = list(self._facts())
        for partition, found in copied.items():
            others += ExactlyOnceCopy().find(f"{COPY}-{partition}", values[partition], found, origin)
        others += self._replicas()
        self._recorder.close()
        promises = Promises(acks_all=self._plan.acks == "all", idempotent=self._plan.acks == "all")
        history = list(recorded(self._recorder.path))
        return Outcome(
            plan=self._plan,
            seconds=seconds,
            blows=self._blows,
            waits={name: waits_after(self._blows, self._by(name, history)) for name in self._names},
            longest={name: longest_after(self._blows, self._by(name, history)) for name in self._names},
            mends=self._mends,
            verdict=judge(history, promises),
            others=others,
            failed_sends=self._recorder.failed,
            copier_restarts=self._copier.restarts if self._copier else [],
            latencies_ms={name: latencies_ms(self._by(name, history), self._warm) for name in self._names},
            tracebacks=[
                f"node {member.number} printed a traceback"
                for member in self._cluster.members
                if "Traceback (most recent call last)" in member.log.read_text(errors="replace")
            ],
        )

    @property
    def _names(self) -> list[str]:
        return [language.name for language in self._languages]

    def _by(self, language: str, history: Sequence[Operation]) -> list[Operation]:
        return [operation for operation in history if self._recorder.languages.get(operation.process) == language]

    def _facts(self) -> Iterator[Anomaly]:
        yield from WatermarksAdvance().find(self._recorder.watermarks)
        yield from OneLeaderPerEpoch().find(self._recorder.leaderships)

    def _replicas(self) -> Iterator[Anomaly]:
        """Compared once the nodes are down: a file that is being written has no end."""
        topics = [TOPIC, COPY] if self._copier else [TOPIC]
        goals = {topic: ends(self._cluster, topic, self._plan.partitions) for topic in topics}
        self._in_sync(*topics)
        self._cluster.stop()
        for topic, goal in goals.items():
            for partition, end in goal.items():
                segments = self._cluster.segments(topic, partition)
                yield from ReplicasIdentical().find(f"{topic}-{partition}", end, segments)


def waits_after(blows: Sequence[Blow], history: Sequence[Operation]) -> list[float]:
    """For each blow the seconds until every partition has acknowledged something that was sent after it."""
    acknowledged: dict[str, list[tuple[int, int]]] = {}
    for operation in history:
        if operation.outcome is Kind.OK and operation.completed is not None:
            for send in operation.sends():
                if send.partition.startswith(f"{TOPIC}-"):
                    acknowledged.setdefault(send.partition, []).append((operation.invoked, operation.completed))
    partitions = [_first_after(sends) for sends in acknowledged.values()]
    return [max((first(blow.at) - blow.at) / 1e9 for first in partitions) for blow in blows]


def longest_after(blows: Sequence[Blow], history: Sequence[Operation]) -> list[float]:
    """For each blow the longest wait, in seconds, of a send that was under way then or began before the next blow."""
    moments = [*(blow.at for blow in blows), sys.maxsize]
    found = [0.0] * len(blows)
    for operation in history:
        if operation.action is Action.SEND and operation.outcome is Kind.OK and operation.completed is not None:
            first = max(0, bisect_right(moments, operation.invoked) - 1)
            for place in range(first, min(bisect_left(moments, operation.completed), len(blows))):
                wait = (operation.completed - max(operation.invoked, moments[place])) / 1e9
                found[place] = max(found[place], wait)
    return found


def _first_after(sends: list[tuple[int, int]]) -> Callable[[int], float]:
    """Answers when the first of those was acknowledged that were sent at or after a moment."""
    sends.sort()
    invoked = [start for start, _ in sends]
    earliest = [*accumulate((end for _, end in reversed(sends)), min)][::-1]

    def first(moment: int) -> float:
        place = bisect_left(invoked, moment)
        return earliest[place] if place < len(earliest) else float("inf")

    return first


def latencies_ms(history: Sequence[Operation], since: int) -> list[float]:
    return sorted(
        (operation.completed - operation.invoked) / 1e6
        for operation in history
        if operation.action is Action.SEND and operation.outcome is Kind.OK and operation.invoked >= since
        if operation.completed is not None
    )


def carry_out(plan: Plan, directory: Path) -> Outcome:
    faults, reasons = possible(plan.faults)
    languages, lacking = at_hand(plan.clients)
    for reason in [*reasons, *lacking]:
        print(reason, file=sys.stderr)
    assert faults, "there is nothing to be done here"
    assert languages, "there is nobody to write"
    with cluster_for(plan, directory, faults) as cluster:
        outcome = Run(plan, cluster, languages, directory).go(faults)
    if outcome.good:
        for place in directory.glob("node-?"):
            shutil.rmtree(place)
    return outcome


def table(outcome: Outcome) -> str:
    """What people read."""
    plan, verdict = outcome.plan, outcome.verdict
    lines = [
        f"{plan.flavour}, acks={plan.acks}, seed {plan.seed}: {outcome.seconds:.0f} s, {len(outcome.blows)} strikes, "
        f"{verdict.acknowledged} records acknowledged, {verdict.unknown} of unknown fate, "
        f"{len(outcome.failed_sends)} sends failed",
        *(
            f"send latency ms, {name}: p50 {quantile(found, 0.5):.0f}, p99 {quantile(found, 0.99):.0f}, "
            f"max {quantile(found, 1):.0f}, of {len(found)}"
            for name, found in outcome.latencies_ms.items()
        ),
        f"copier started again {len(outcome.copier_restarts)} times",
        "",
        f"{'fault':<10} {'strikes':>7}   {'':<12} {'until writable, s':<20} {'longest send, s':<19} until in sync, s",
        f"{'':<10} {'':>7}   {'clients':<12} {'median':>8} {'max':>8}    {'median':>8} {'max':>8} {'max':>10}",
    ]
    for name in sorted({blow.fault for blow in outcome.blows}):
        struck = [place for place, blow in enumerate(outcome.blows) if blow.fault == name]
        mend = max(outcome.mends[place] for place in struck)
        for language, waits in outcome.waits.items():
            shown = "   ".join(
                f"{quantile(times, 0.5):>8.2f} {quantile(times, 1):>8.2f}"
                for times in (sorted(of[place] for place in struck) for of in (waits, outcome.longest[language]))
            )
            lines.append(f"{name:<10} {len(struck):>7}   {language:<12} {shown} {mend:>10.2f}")
    lines += ["", *_findings(outcome)]
    return "\n".join(lines)


def _findings(outcome: Outcome) -> Iterator[str]:
    for name, found in sorted(outcome.verdict.illegal.items()):
        yield f"ILLEGAL {name}: {len(found)}{'+' if len(found) >= 100 else ''}, such as: {found[0]}"
    for anomaly in outcome.others[:20]:
        yield f"ILLEGAL {anomaly}"
    yield from (f"ILLEGAL {trace}" for trace in outcome.tracebacks)
    for name, found in sorted(outcome.verdict.legal.items()):
        yield f"legal   {name}: {len(found)}{'+' if len(found) >= 100 else ''}"
    reasons: dict[str, int] = {}
    for said in outcome.failed_sends:
        reason = re.sub(r"-?\d{5,}", "#", said)  # one kind of refusal, however many moments it names
        reasons[reason] = reasons.get(reason, 0) + 1
    yield from (f"failed sends: {count} x {reason}" for reason, count in reasons.items())
    if outcome.good:
        yield "passed: nothing lost, doubled, reordered or contradicted"


def summary(outcome: Outcome) -> str:
    """The same as JSON, for scripts."""
    return json.dumps(
        {
            "flavour": outcome.plan.flavour,
            "acks": outcome.plan.acks,
            "seed": outcome.plan.seed,
            "seconds": round(outcome.seconds, 1),
            "acknowledged": outcome.verdict.acknowledged,
            "failed_sends": len(outcome.failed_sends),
            "illegal": {name: len(found) for name, found in outcome.verdict.illegal.items()},
            "contradictions": [str(anomaly) for anomaly in outcome.others],
            "latency_ms": {
                name: {str(share): round(quantile(found, share), 1) for share in (0.5, 0.99, 1)}
                for name, found in outcome.latencies_ms.items()
            },
            "strikes": [
                {
                    "fault": blow.fault,
                    "story": blow.story,
                    "wait_s": {name: round(waits[place], 3) for name, waits in outcome.waits.items()},
                    "longest_s": {name: round(times[place], 3) for name, times in outcome.longest.items()},
                    "mend_s": round(outcome.mends[place], 3),
                }
                for place, blow in enumerate(outcome.blows)
            ],
        },
        indent=1,
    )
