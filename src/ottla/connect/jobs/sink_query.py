"""A sink on the driver's side: where its group stands, and the commit of each batch.

Offsets are committed when the target has taken the batch. Dead letters are written in one transaction with them, so
there is one letter for each bad record however often its batch was tried.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.client import groups
from ottla.client.errors import KafkaError
from ottla.client.offsets import Found, list_offsets
from ottla.connect.dead_letters import Letter, letter_headers
from ottla.connect.jobs.account import Outcome
from ottla.connect.jobs.feed import Work
from ottla.connect.jobs.internal_topics import ensure_letters
from ottla.connect.jobs.looking import Pause
from ottla.connect.jobs.outgoing import Outgoing
from ottla.connect.jobs.query import BatchFailed
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.reports import Counts, SinkReport
from ottla.connect.jobs.sink_planning import Portion, SinkPlanner, sink_work, told_spans
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import ConfigRefused, Observed
from ottla.connect.transforms.patterns import compiled, in_python
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.transaction import Sequences, Transaction
from ottla.pipelines.sink.writer import Errand
from ottla.pipelines.source.offsets import EARLIEST, LATEST, to_json
from ottla.pipelines.source.options import SourceOptions, matching, parse_options

TIMEOUT_S: Final = 60.0
TRANSACTION_TIMEOUT_MS: Final = 60_000
TARGET_MS: Final = 1000
"""A batch of a backlog takes about so long."""
LOOK_S: Final = 0.5
"""How often brokers are asked whether there is something new."""


class SinkDelivery:
    def __init__(self, spec: JobSpec) -> None:
        """Raises ConfigRefused."""
        self._spec = spec
        self._task = SinkTask(spec)
        self.gather_ms = self._task.gather_ms()
        self._consuming = spec.reach("consumer")
        self._cluster = spec.cluster("consumer", TIMEOUT_S)
        self._producing = spec.cluster("producer", TIMEOUT_S)
        self._transaction = Transaction(self._producing, spec.transactional_id(0), timeout_ms=TRANSACTION_TIMEOUT_MS)
        self._sequences = Sequences()
        self._planner: SinkPlanner | None = None

    def open(self) -> Work:
        policy = self._spec.policy
        with self._spec.cluster("admin", TIMEOUT_S) as cluster:
            ensure_letters(cluster, policy)
        if policy.topic:
            # Ends what a former life left open, so that its offsets are decided.
            self._transaction.initialise()
        options = self._options()
        self._planner = SinkPlanner(self._spec, options, self._task.first_records)
        return sink_work(self._spec, options)

    def close(self) -> None:
        self._task.close()
        if self._planner is not None:
            self._planner.close()
        self._cluster.close()
        self._producing.close()

    # Where it begins.

    def _options(self) -> SourceOptions:
        isolation = (self._spec.client_settings("consumer").get("isolation.level") or "read_committed").strip()
        pattern = topics_pattern(self._spec.config)
        return parse_options(
            {
                "kafka.bootstrap.servers": self._consuming.servers,
                "clientSettingsFile": self._consuming.settings_file,
                "subscribePattern": pattern,
                "startingOffsets": json.dumps(to_json(self._starting(pattern))),
                # Between two triggers a backlog waits too: what is gathered for long has to be as much.
                "targetMillisPerTrigger": str(max(TARGET_MS, self.gather_ms)),
                "includeHeaders": str(not self._task.by_columns or bool(self._spec.policy.topic)).lower(),
                "isolationLevel": isolation,
                "brokerTimeoutMillis": str(int(TIMEOUT_S * 1000)),
            }
        )

    def _starting(self, pattern: str) -> dict[TopicPartition, int]:
        """The group's offsets; where it has none, or one that is not in the log any more, `auto.offset.reset`."""
        wanted = matching(pattern)
        places = [
            TopicPartition(topic.name, partition.partition_index)
            for topic in self._cluster.metadata().topics
            if topic.name is not None and not topic.is_internal and wanted.fullmatch(topic.name)
            for partition in topic.partitions
        ]
        if not places:
            return {}
        committed = groups.decided(self._cluster, self._spec.group, places)
        first, last = self._ends(places, EARLIEST), self._ends(places, LATEST)
        reset = (self._spec.client_settings("consumer").get("auto.offset.reset") or "earliest").strip().lower()
        begin = last if reset == "latest" else first
        found: dict[TopicPartition, int] = {}
        for place in places:
            offset = committed[place].offset if place in committed else -1
            inside = first[place] <= offset <= last[place]
            if place in committed and not inside and reset == "none":
                raise ConfigRefused(
                    "consumer.override.auto.offset.reset",
                    f"is none, and the group stands at {offset} of {place}, which has {first[place]} to {last[place]}",
                )
            found[place] = offset if inside else begin[place]
        return found

    def _ends(self, places: Sequence[TopicPartition], which: int) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for place, outcome in list_offsets(self._cluster, dict.fromkeys(places, which)).items():
            if not isinstance(outcome, Found):
                raise outcome
            found[place] = outcome.offset
        return found

    # A batch.

    def look(self, pause: Pause) -> Sequence[Portion]:
        assert self._planner is not None, "it was opened"
        portions = self._planner.look()
        if portions:
            self._task.prepare([span for portion in portions for span in told_spans(portion)])
        elif self._planner.has_moved:
            self._commit(self._planner.ends, ())
        return portions

    def rest_s(self) -> float:
        return LOOK_S

    def observed(self) -> Sequence[Observed]:
        return ()

    def alerts(self) -> Sequence[str]:
        return ()

    def settle(self, reports: Sequence[SinkReport]) -> Outcome:
        assert self._planner is not None, "it was opened"
        ends = self._planner.ends
        for report in reports:
            if report.failed is not None:
                raise BatchFailed(report.failed)
        letters = [(report.task, letter) for report in reports for letter in report.letters]
        self._commit(ends, letters)
        counts = Counts()
        for report in reports:
            counts = counts.plus(report.counts)
        if not self._spec.policy.topic:
            counts = counts._replace(letters=0)
        return Outcome(counts, dict.fromkeys(place.topic for place in ends), [letter for _, letter in letters])

    def _commit(self, ends: Mapping[TopicPartition, int], letters: Sequence[tuple[int, Letter]]) -> None:
        if letters and self._spec.policy.topic:
            self._commit_with(ends, letters)
            return
        for outcome in groups.commit(self._cluster, self._spec.group, ends).values():
            if isinstance(outcome, KafkaError):
                raise outcome

    def _commit_with(self, ends: Mapping[TopicPartition, int], letters: Sequence[tuple[int, Letter]]) -> None:
        transaction, spec = self._transaction, self._spec
        sender = transaction.sender
        errand = Errand(
            reach=spec.reach("producer"),
            transactional_id=transaction.name,
            sender=sender,
            second=transaction.second,
            sequences=dict(self._sequences.of(sender)),
        )
        out = Outgoing(self._producing, errand)
        try:
            out.send(self._letter(*each) for each in letters)
            out.flush()
            for place, records in out.written.items():
                self._sequences.wrote(sender, place, records)
            transaction.commit_offsets(spec.group, ends)
        except BaseException:
            transaction.abort()
            raise
        transaction.commit()

    def _letter(self, task: int, letter: Letter) -> RawRecord:
        policy = self._spec.policy
        headers = letter_headers(letter, self._spec.name, task) if policy.with_headers else letter.headers
        timestamp = letter.timestamp if letter.timestamp is not None and letter.timestamp >= 0 else _now_ms()
        return RawRecord(letter.key, letter.value, policy.topic, None, timestamp, headers)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def topics_pattern(config: Mapping[str, Any]) -> str:
    """Of `topics` or `topics.regex`, one of which a sink has. Topics that are not there yet are waited for."""
    regex = (config.get("topics.regex") or "").strip()
    names = [name for each in (config.get("topics") or "").split(",") if (name := each.strip())]
    if bool(regex) == bool(names):
        raise ConfigRefused("topics", "either topics or topics.regex has to be set, not both")
    if not regex:
        return "|".join(re.escape(name) for name in names)
    try:
        compiled(regex)
    except ValueError as error:
        raise ConfigRefused("topics.regex", f"{regex} is no regular expression: {error}") from error
    return in_python(regex)
