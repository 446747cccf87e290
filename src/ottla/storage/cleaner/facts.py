"""What passes between a log and whoever cleans it: plain values, which another process can be given."""

from typing import NamedTuple

from ottla.storage import names
from ottla.storage.config import LogConfig
from ottla.storage.fs import CorruptLog
from ottla.storage.index import AbortedTxn


class Source(NamedTuple):
    """A segment as the round found it."""

    base_offset: int
    next_base: int
    prefix: str
    size: int

    def corrupt(self, position: int, reason: str) -> CorruptLog:
        return CorruptLog(self.prefix + names.LOG, f"at byte {position}: {reason}")


class Limits(NamedTuple):
    """What one cleaner may take."""

    memory: int
    load: float = 0.9
    read_bytes: int = 256 << 10
    paced: bool = False
    """There is a bound on bytes per second: the cleaner asks before it goes on."""


class Facts(NamedTuple):
    """All that a round knows of its log when it begins."""

    first_dirty: int
    first_uncleanable: int
    config: LogConfig
    sources: tuple[Source, ...]
    aborted: tuple[AbortedTxn, ...]
    """Those of the active segment, which still changes: markers of transactions in this range may lie there."""
    aborted_paths: tuple[str, ...]
    """Of the other segments."""
    limits: Limits
    now: int


class LastRecord(NamedTuple):
    """By what the cleaner knows the last batch of a producer."""

    offset: int
    """Last offset of its last data batch, -1 if only a marker is known."""
    epoch: int


LastRecords = dict[int, LastRecord]
"""Of the producers active when a group is rewritten, by their ids."""


class Mapped(NamedTuple):
    """What the first pass came to."""

    groups: tuple[tuple[Source, ...], ...]
    """Each becomes one segment."""
    end_offset: int
    """Everything below it is clean once all groups are replaced."""


class Replacement(NamedTuple):
    """A segment that the cleaner wrote: files under their names with `.cleaned` behind, all of them durable."""

    base_offset: int
    size: int
    max_timestamp: int
    max_timestamp_offset: int
    suffixes: tuple[str, ...]


class Stats(NamedTuple):
    """What a round did so far."""

    records: int
    bytes_read: int
    bytes_written: int


class Rewrite(NamedTuple):
    """Asks for the replacement of a group."""

    number: int
    last_records: LastRecords


class Rewritten(NamedTuple):
    replacement: Replacement
    stats: Stats


class Spent(NamedTuple):
    """So many bytes were read and written by a cleaner that is paced: it waits for leave to go on."""

    size: int


class Failed(NamedTuple):
    """The round is over."""

    error: Exception
