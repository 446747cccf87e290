"""The one shape of every core: decide, replay, tick.

`decide(command, now)` returns a Decision and changes nothing durable. The runner appends the records, replays them into
the core, waits until they are committed, performs the effects and then gives the reply. `replay(record)` is the only
durable mutator, so it also rebuilds the core after a restart. `tick(now)` is a decide for time.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

Reply = TypeVar("Reply", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    reply: Reply
    records: tuple[object, ...] = ()
    effects: tuple[object, ...] = ()
