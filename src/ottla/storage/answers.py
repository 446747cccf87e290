"""What a log is told and what it answers: who appends, what became of a batch, a slice to send, files to remove.

Values without behaviour, so that whoever handles them need not know the log.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from ottla.model.errors import Errors
from ottla.storage.fs import File
from ottla.storage.segment import Segment
from ottla.storage.validate import RecordError


class Origin(IntEnum):
    CLIENT = 0
    COORDINATOR = 1
    RAFT = 2
    SIEVED = 3
    """A client's, of which the broker has taken records away: it may have fewer than its offsets."""


CLIENT: Final = Origin.CLIENT
COORDINATOR: Final = Origin.COORDINATOR
RAFT: Final = Origin.RAFT
SIEVED: Final = Origin.SIEVED


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    append_time: int
    """-1 unless the topic stamps LogAppendTime."""
    log_start_offset: int
    duplicate: bool = False


class Rejected(NamedTuple):
    error: Errors
    message: str
    record_errors: tuple[RecordError, ...] = ()


class FileSlice:
    """A piece of a log file, for sendfile. Holding it keeps the descriptor open, whatever becomes of the segment."""

    __slots__ = ("file", "length", "position", "segment")

    def __init__(self, file: File, position: int, length: int, segment: Segment) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.segment = segment

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        return self.file.fileno()

    def read(self) -> bytes:
        return self.file.pread(self.length, self.position)

    def __repr__(self) -> str:
        return f"FileSlice({self.segment.path()!r}, position={self.position}, length={self.length})"


class Deletion(NamedTuple):
    """Files (or, with `directory`, a whole directory) the runner removes after so long, whatever clocks are set to."""

    paths: tuple[str, ...]
    delay_ms: int
    directory: str | None = None


class FoundOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int
    doubt: str = ""
    """Why the batch's header had to answer and not its records."""


class ActiveProducer(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    txn_start_offset: int
