"""A replica on its way to another log directory of its broker (KIP-113): what to do next.

The log that is to come there, the future log, follows the current one as a follower follows its leader, by the same
rules: where the two have parted it is cut back. Once it has everything the controller is told where the replica will
lie (KIP-858), so that it knows whose leader to replace if that directory fails; when it has agreed, and not before, and
when the future log has everything again, the two change places.

Nothing that was durable becomes less so: the future log is on the disk as far as the current one when they change.
"""

from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol

from ottla.replication.follower import FollowerLog, common_end
from ottla.replication.leader import Diverging, check_position


class MovingLog(FollowerLog, Protocol):
    recovery_point: int


class Do(IntEnum):
    COPY = 0
    """What lies behind the end of the future log."""
    TRUNCATE = 1
    """The future log, to the offset given."""
    RESTART = 2
    """The future log, empty, at the offset given."""
    FLUSH = 3
    """The future log: `flushed` is to follow."""
    ASK = 4
    """The controller to take note of the directory: `asked` is to follow."""
    WAIT = 5
    """For the controller."""
    SWAP = 6
    FLUSH_AND_SWAP = 7
    """At once, as records may come in between for ever; all but the last of them is on the disk."""


class Next(NamedTuple):
    do: Do
    offset: int = -1


class Stage(Enum):
    COPYING = "it has not had everything yet"
    WHOLE = "it had everything, and that is on the disk"
    ASKED = "the controller was told"
    AGREED = "the metadata says that the replica is there"


_COPY: Final = Next(Do.COPY)
_FLUSH: Final = Next(Do.FLUSH)
_ASK: Final = Next(Do.ASK)
_WAIT: Final = Next(Do.WAIT)


class DirectoryMove:
    __slots__ = ("stage",)

    def __init__(self, *, agreed: bool = False) -> None:
        """`agreed`: the metadata says already that the replica is there, or has no place to say so."""
        self.stage = Stage.AGREED if agreed else Stage.COPYING

    def next(self, current: MovingLog, future: MovingLog) -> Next:
        parted = _parted(current, future)
        if parted is not None:
            return parted
        if future.log_end_offset < current.log_end_offset:
            return _COPY
        is_durable = future.recovery_point >= current.recovery_point
        if self.stage is Stage.COPYING and not is_durable:
            return _FLUSH
        if self.stage is Stage.AGREED:
            return Next(Do.SWAP if is_durable else Do.FLUSH_AND_SWAP)
        return _WAIT if self.stage is Stage.ASKED else _ASK

    def flushed(self) -> None:
        if self.stage is Stage.COPYING:
            self.stage = Stage.WHOLE

    def asked(self) -> None:
        if self.stage is not Stage.AGREED:
            self.stage = Stage.ASKED

    def placed(self, *, here: bool) -> None:
        """The metadata says where the replica lies: in the directory that it moves to, or not."""
        if here:
            self.stage = Stage.AGREED

    @property
    def is_known(self) -> bool:
        """The metadata may say that the replica is where it moves to: whoever gives the move up has to deny it."""
        return self.stage in (Stage.ASKED, Stage.AGREED)


def _parted(current: MovingLog, future: MovingLog) -> Next | None:
    end, epoch = future.log_end_offset, future.latest_epoch
    if end < current.log_start_offset:
        return Next(Do.RESTART, current.log_start_offset)
    if epoch < 0:  # nothing was copied yet
        return Next(Do.TRUNCATE, current.log_end_offset) if end > current.log_end_offset else None
    # By what lies in the current log alone, whoever leads: a power cut may have left more of the copy than of it.
    position = check_position(current, epoch + 1, end, epoch)
    if position is None:
        return None
    assert isinstance(position, Diverging), "offsets below the log start were looked at before"
    return Next(Do.TRUNCATE, common_end(position.epoch, position.end_offset, future))
