"""Dead letters, once more: back to the topics they came from, or straight to a connector. Each letter once.

Which letters are done is kept with a consumer group of their own: its offset is the first letter that is not, and the
metadata beside it names the ranges behind that are. For topics both are written in one transaction with the records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ottla.client import groups
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.consumer import Consumer
from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, Found, list_offsets
from ottla.client.reach import Reach
from ottla.connect.dead_letters import PREFIX, RawHeader
from ottla.connect.jobs.outgoing import Outgoing
from ottla.connect.jobs.raw_record import RawRecord
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.transaction import Sequences, Transaction
from ottla.pipelines.sink.writer import Errand
from ottla.protocol.records import Record

GROUP_PREFIX: Final = "connect-redrive-"
AT_ONCE: Final = 1_000
"""Letters in one transaction."""
MOST_METADATA: Final = 3_500
"""Characters: a broker takes 4,096 bytes (offset.metadata.max.bytes)."""
_CONDITION: Final = re.compile(r"\s*([a-z.]+)\s*(!=|=|!~|~)\s*(.*?)\s*", re.DOTALL)
_WORDS: Final = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "connector": "connector.name",
    "task": "task.id",
    "stage": "stage",
    "class": "class.name",
    "exception": "exception.class.name",
    "message": "exception.message",
    "cut": "cut",
}


class RedriveRefused(ValueError):
    """The text says what to do."""


class DeadLetter(NamedTuple):
    place: TopicPartition
    record: Record

    @property
    def said(self) -> dict[str, str]:
        """By the ends of Connect's headers."""
        return {
            name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
            for name, value in self.record.headers
            if name.startswith(PREFIX)
        }

    @property
    def own_headers(self) -> list[RawHeader]:
        return [(name, value) for name, value in self.record.headers if not name.startswith(PREFIX)]


Wanted = Callable[[DeadLetter], bool]


def condition(text: str) -> Wanted:
    """`stage=VALUE_CONVERTER`, `message~timeout`, `topic!=a`; `key` and `value` are the letter's own. Raises
    RedriveRefused."""
    found = _CONDITION.fullmatch(text)
    if found is None or (found[1] not in _WORDS and found[1] not in ("key", "value")):
        raise RedriveRefused(
            f"--filter {text}: NAME=TEXT, NAME!=TEXT, NAME~PATTERN or NAME!~PATTERN is expected, "
            f"with one of {', '.join(_WORDS)}, key, value"
        )
    name, operator, wanted = found.groups()
    try:
        pattern = re.compile(wanted if "~" in operator else re.escape(wanted), re.DOTALL)
    except re.error as error:
        raise RedriveRefused(f"--filter {text}: {wanted} is no regular expression: {error}") from error
    matches = pattern.search if "~" in operator else pattern.fullmatch
    negated = operator.startswith("!")

    def holds(letter: DeadLetter) -> bool:
        return (matches(_told(letter, name)) is None) is negated

    return holds


def _told(letter: DeadLetter, name: str) -> str:
    if name in ("key", "value"):
        own = letter.record.key if name == "key" else letter.record.value
        return (own or b"").decode(errors="replace")
    return letter.said.get(_WORDS[name], "")


class Done(NamedTuple):
    """Of one partition of the letters: which were sent."""

    first: int
    """All before it."""
    ranges: tuple[tuple[int, int], ...] = ()
    """Behind it: [start, end)."""

    def __contains__(self, offset: object) -> bool:
        return isinstance(offset, int) and (
            offset < self.first or any(start <= offset < end for start, end in self.ranges)
        )

    def plus(self, offsets: Iterable[int], known: Sequence[int]) -> Done:
        """`known`: the offsets of all letters there are, in order. What lies between two of them belongs to nobody."""
        sent = sorted({*offsets, *(each for each in known if each in self)})
        places = {offset: nth for nth, offset in enumerate(known)}
        ranges: list[tuple[int, int]] = []
        for offset in sent:
            nth = places[offset]
            end = known[nth + 1] if nth + 1 < len(known) else offset + 1
            if ranges and ranges[-1][1] == offset:
                ranges[-1] = (ranges[-1][0], end)
            else:
                ranges.append((offset, end))
        first = self.first
        if ranges and known and ranges[0][0] <= max(known[0], first):
            first = ranges.pop(0)[1]
        return Done(first, tuple(ranges))

    def as_text(self) -> str:
        return ",".join(f"{start}-{end}" for start, end in self.ranges)

    @staticmethod
    def of(offset: int, text: str) -> Done:
        """What cannot be read was not written by us, and counts for nothing."""
        pairs = re.findall(r"(\d+)-(\d+)", text)
        return Done(offset, tuple((int(start), int(end)) for start, end in pairs))


class Letters:
    """The letters of one topic, and which of them are done."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self.topic = topic
        self.group = f"{GROUP_PREFIX}{topic}"
        self._done: dict[TopicPartition, Done] = {}
        self._known: dict[TopicPartition, list[int]] = {}

    def read(self, wanted: Sequence[Wanted]) -> Iterator[DeadLetter]:
        """Those that were not sent yet and that all conditions hold for."""
        places = [TopicPartition(self.topic, number) for number in self._cluster.partitions(self.topic)]
        committed = groups.decided(self._cluster, self.group, places)
        spans: dict[TopicPartition, tuple[int, int | None]] = {}
        ends = list_offsets(self._cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
        for place, begin in list_offsets(self._cluster, dict.fromkeys(places, EARLIEST)).items():
            found = committed.get(place)
            done = Done.of(found.offset, found.metadata) if found is not None else Done(_offset(begin))
            self._done[place] = done
            self._known[place] = []
            spans[place] = (max(_offset(begin), done.first), _offset(ends[place]))
        consumer = Consumer(self._cluster, spans, isolation=READ_COMMITTED)
        while consumer.active:
            for fetched in consumer.poll(1.0):
                for record in fetched.records:
                    self._known[fetched.place].append(record.offset)
                    letter = DeadLetter(fetched.place, record)
                    if record.offset not in self._done[fetched.place] and all(holds(letter) for holds in wanted):
                        yield letter

    def sent(self, letters: Sequence[DeadLetter]) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        """What the group says when these are done; others may not have been read yet. Raises RedriveRefused."""
        offsets: dict[TopicPartition, list[int]] = {}
        for letter in letters:
            offsets.setdefault(letter.place, []).append(letter.record.offset)
        for place, these in offsets.items():
            done = self._done[place] = self._done[place].plus(these, self._known[place])
            self._known[place] = [offset for offset in self._known[place] if offset >= done.first]
        said = {place: self._done[place].as_text() for place in offsets}
        if any(len(text) > MOST_METADATA for text in said.values()):
            raise RedriveRefused(
                "the letters that were sent lie too far apart to be remembered: send those in between as well, "
                "by a wider --filter"
            )
        return {place: self._done[place].first for place in offsets}, said


def require_whole(found: Iterable[DeadLetter]) -> None:
    """Raises RedriveRefused for a letter that lacks something of its record: what was sent would be another one."""
    for letter in found:
        gone = [part for part in letter.said.get("cut", "").split(", ") if part and not part.startswith("exception.")]
        if gone:
            raise RedriveRefused(
                f"letter {letter.place.partition}:{letter.record.offset} was too large for its topic: it has no "
                f"{', '.join(gone)}; --filter cut= takes those that nothing was cut from"
            )


def to_topics(
    cluster: Cluster, letters: Letters, found: Iterable[DeadLetter], topic: str | None = None
) -> Mapping[str, int]:
    """Back to the topic that each came from, or all to one; some at a time, as `found` brings them. Gives how many went
    where. Raises RedriveRefused for one that does not tell its topic or is not whole: `require_sendable` looks before
    any is sent."""
    transaction = Transaction(cluster, letters.group, timeout_ms=60_000)
    transaction.initialise()
    sequences = Sequences()
    counts: dict[str, int] = {}
    coming = iter(found)
    while some := list(islice(coming, AT_ONCE)):
        require_sendable(some, topic)
        portion = [(letter, topic or _topic_of(letter)) for letter in some]
        sender = transaction.sender
        sequences_now = dict(sequences.of(sender))
        errand = Errand(Reach(""), transaction.name, sender, second=transaction.second, sequences=sequences_now)
        out = Outgoing(cluster, errand)
        try:
            out.send(_again(letter, target) for letter, target in portion)
            out.flush()
            for place, records in out.written.items():
                sequences.wrote(sender, place, records)
            offsets, said = letters.sent(some)
            transaction.commit_offsets(letters.group, offsets, said)
        except BaseException:
            transaction.abort()
            raise
        transaction.commit()
        for _, target in portion:
            counts[target] = counts.get(target, 0) + 1
    return counts


def require_sendable(found: Iterable[DeadLetter], topic: str | None) -> None:
    """Raises RedriveRefused."""
    for letter in found:
        require_whole((letter,))
        if topic is None:
            _topic_of(letter)


def _topic_of(letter: DeadLetter) -> str:
    topic = letter.said.get("topic")
    if not topic:
        raise RedriveRefused(
            f"a letter of {letter.place.topic} does not tell its topic: name one by --to, and set "
            "errors.deadletterqueue.context.headers.enable=true for those to come"
        )
    return topic


def _again(letter: DeadLetter, topic: str) -> RawRecord:
    record = letter.record
    timestamp = record.timestamp if record.timestamp >= 0 else time.time_ns() // 1_000_000
    return RawRecord(record.key, record.value, topic, None, timestamp, letter.own_headers)


def _offset(found: object) -> int:
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Found)
    return found.offset
