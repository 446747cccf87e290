"""What an assignor is told, and the table of those there are."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

Partitions = dict[bytes, tuple[int, ...]]
"""By topic id, ascending."""


class MemberSpec(NamedTuple):
    instance_id: str | None
    topics: tuple[bytes, ...]
    """Ids of the topics it reads, those that exist, each once."""
    target: Partitions
    """What it was given last time: a good assignor leaves as much of it as it can."""


Assignor = Callable[[Mapping[str, MemberSpec], Mapping[bytes, int]], dict[str, Partitions]]
"""Members by id, and the number of partitions by topic id. Gives every member its partitions."""
