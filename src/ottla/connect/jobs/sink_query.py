"""A sink on the driver's side: where its group stands, and the commit of each batch.

Offsets are committed when the target has taken the batch, in a transaction: whoever begins takes its id over, so the
life before can commit no more, and its tasks are told so before they write (`fence`). Dead letters are in that
transaction, so there is one for each bad record however often its batch was tried.
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
from ottla.connect.dead_letters import Letter
from ottla.connect.jobs.account import Outcome
from ottla.connect.jobs.feed import Work
from ottla.connect.jobs.fence import Fence
from ottla.connect.jobs.gathering import Gathering
from ottla.connect.jobs.internal_topics import ensure_letters
from ottla.connect.jobs.letters import fitted, letter_record
from ottla.connect.jobs.looking import Pause
from ottla.connect.jobs.outgoing import Outgoing
from ottla.connect.jobs.query import BatchFailed
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.reports import Counts, Failed, SinkReport
from ottla.connect.jobs.sink_planning import Portion, SinkPlanner, sink_work, told_spans
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.sizes import ASKED_FROM, DEFAULT, Sizes, size_of
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import ConfigRefused, Observed
from ottla.connect.transforms.patterns import compiled, in_python
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.transaction import FENCING, Fenced, Sequences, Transaction
from ottla.pipelines.sink.writer import Errand
from ottla.pipelines.source.offsets import EARLIEST, LATEST, to_json
from ottla.pipelines.source.options import SourceOptions, matching, parse_options

TIMEOUT_S: Final = 60.0
TRANSACTION_TIMEOUT_MS: Final = 60_000
LOOK_S: Final = 0.5
"""How often brokers are asked whether there is something new."""
AGAIN_S: Final = 86_400.0
"""How often offsets are committed that have not changed: brokers forget those of a group without members, and an id
that nobody writes with, after a week."""


class SinkDelivery:
    def __init__(self, spec: JobSpec) -> None:
        """Raises ConfigRefused."""
        self._spec = spec
        self._task = SinkTask(spec)
        self.gather_ms = 0
        """Nothing is gathered before it is looked for: how much there is decides, too."""
        self._consuming = spec.reach("consumer")
        self._cluster = spec.cluster("consumer", TIMEOUT_S)
        self._committing = spec.cluster(spec.committing, TIMEOUT_S)
        self._transaction = Transaction(self._committing, spec.transactional_id(0), timeout_ms=TRANSACTION_TIMEOUT_MS)
        self._fence = Fence(self._transaction)
        self._unfenced = ""
        """Why it is not fenced."""
        self._committed_s = time.monotonic()
        self._sequences = Sequences()
        self._sizes = Sizes(self._committing)
        self._planner: SinkPlanner | None = None

    def open(self) -> Work:
        policy = self._spec.policy
        with self._spec.cluster("admin", TIMEOUT_S) as cluster:
            ensure_letters(cluster, policy)
        # Puts whoever had this connector before out of action, and ends what it left open.
        self._initialise()
        options = self._options()
        every_s = 0.0 if self._spec.once else self._task.gather_ms() / 1000
        gathering = Gathering(every_s, self._task.gather_records(), self._task.most_records)
        self._planner = SinkPlanner(self._spec, options, self._task.first_records, gathering)
        return sink_work(self._spec, options)

    def _initialise(self) -> None:
        try:
            self._transaction.initialise()
        except KafkaError as error:
            # Java's workers need no such right for a sink.
            if error.error is not Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED or self._spec.policy.topic:
                raise
            self._unfenced = (
                f"its user may not write as transactional id {self._transaction.name}: a worker that stood still and "
                "comes back may write over what the next one wrote. Allow it WRITE there"
            )
        else:
            self._fence.held()
            self._task.asks(self._fence)

    def close(self) -> None:
        self._task.close()
        if self._planner is not None:
            self._planner.close()
        self._cluster.close()
        self._committing.close()

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
        elif self._planner.has_moved or time.monotonic() - self._committed_s > AGAIN_S:
            self._commit(self._planner.ends, ())
        sender = None if self._unfenced else self._transaction.sender
        return [portion._replace(sender=sender) for portion in portions]

    def rest_s(self) -> float:
        return LOOK_S

    def observed(self) -> Sequence[Observed]:
        return ()

    def alerts(self) -> Sequence[str]:
        return (self._unfenced,) if self._unfenced else ()

    def settle(self, reports: Sequence[SinkReport]) -> Outcome:
        assert self._planner is not None, "it was opened"
        ends = self._planner.ends
        for report in reports:
            if report.failed is not None:
                raise self._failure(report.failed)
        letters = [(report.task, letter) for report in reports for letter in report.letters]
        self._commit(ends, letters)
        counts = Counts()
        for report in reports:
            counts = counts.plus(report.counts)
        if not self._spec.policy.topic:
            counts = counts._replace(letters=0)
        return Outcome(counts, dict.fromkeys(place.topic for place in ends), [letter for _, letter in letters])

    def _failure(self, failed: Failed) -> Fenced | BatchFailed:
        fenced = failed.code and Errors(failed.code) in FENCING
        return Fenced(self._transaction.name) if fenced else BatchFailed(failed)

    def _commit(self, ends: Mapping[TopicPartition, int], letters: Sequence[tuple[int, Letter]]) -> None:
        if not self._spec.policy.topic:
            letters = ()
        self._committed_s = time.monotonic()
        if self._unfenced:
            self._commit_plainly(ends)
        elif ends or letters:
            self._commit_with(ends, letters)

    def _commit_plainly(self, ends: Mapping[TopicPartition, int]) -> None:
        for outcome in groups.commit(self._cluster, self._spec.group, ends).values():
            if isinstance(outcome, KafkaError):
                raise outcome

    def _commit_with(self, ends: Mapping[TopicPartition, int], letters: Sequence[tuple[int, Letter]]) -> None:
        transaction = self._transaction
        try:
            if letters:
                self._send(letters)
            transaction.commit_offsets(self._spec.group, ends)
        except BaseException:
            transaction.abort()
            raise
        transaction.commit()
        self._fence.held()

    def _send(self, letters: Sequence[tuple[int, Letter]]) -> None:
        transaction = self._transaction
        sender = transaction.sender
        errand = Errand(
            reach=self._spec.reach("producer"),
            transactional_id=transaction.name,
            sender=sender,
            second=transaction.second,
            sequences=dict(self._sequences.of(sender)),
        )
        out = Outgoing(self._committing, errand, sizes=self._sizes)
        out.send(self._letter(*each) for each in letters)
        out.flush()
        for place, records in out.written.items():
            self._sequences.wrote(sender, place, records)

    def _letter(self, task: int, letter: Letter) -> RawRecord:
        policy = self._spec.policy
        timestamp = letter.timestamp if letter.timestamp is not None and letter.timestamp >= 0 else _now_ms()
        record = letter_record(letter, policy, self._spec.name, task, timestamp)
        if size_of(record) < ASKED_FROM:
            return record
        return fitted(record, len(letter.headers), self._sizes.most(policy.topic) or DEFAULT)


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
