"""The one shape of every core: decide, replay, tick.

`decide(command, now)` returns a Decision and changes nothing durable. The runner appends the records, replays them into
the core, waits until they are committed, performs the effects and then gives the reply. `replay(record)` is the only
durable mutator, so it also rebuilds the core after a restart. `tick(now)` is a decide for time.

Each room with such cores has a Decision of its own, which says what its log is made of.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

ReplyT_co = TypeVar("ReplyT_co", covariant=True)
RecordT_co = TypeVar("RecordT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[ReplyT_co, RecordT_co]):
    reply: ReplyT_co
    records: tuple[RecordT_co, ...] = ()
    effects: tuple[object, ...] = ()
