"""How much of a source is one transaction: `transaction.boundary` of KIP-618.

A transaction is open only while a micro-batch is written, and a micro-batch is one for each task. With `poll` it holds
as many reads as are done in about a second, where Java's holds one: readers see a read as a whole in both. With
`interval` a micro-batch begins every `transaction.boundary.interval.ms` and holds what has come since. With `connector`
each read is a transaction of its own, for those who say by `defines_transactions` that theirs are meant so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

POLL: Final = "poll"
INTERVAL: Final = "interval"
CONNECTOR: Final = "connector"
TARGET_S: Final = 1.0
"""A batch of a backlog takes about so long."""
INTERVAL_MS: Final = 60_000
"""`offset.flush.interval.ms`, which Java's workers take where nothing is said."""


class Boundary(NamedTuple):
    kind: str = POLL
    interval_ms: int = INTERVAL_MS

    @staticmethod
    def of(config: Mapping[str, str | None]) -> Boundary:
        """Of a config that was found good."""
        said = (config.get("transaction.boundary") or POLL).strip().lower()
        return Boundary(said, int(config.get("transaction.boundary.interval.ms") or INTERVAL_MS))

    @property
    def gather_ms(self) -> int:
        """How long a micro-batch waits for the one before it, at least."""
        return self.interval_ms if self.kind == INTERVAL else 0

    def may_read_on(self, reading_s: float, *, few: bool = False) -> bool:
        """Whether another read belongs to the transaction, after `reading_s` seconds of reading. `few`: what was read
        is little yet, and what Spark spends on a batch does not depend on how much there is."""
        if self.kind == CONNECTOR:
            return False
        return few or reading_s < (max(TARGET_S, self.interval_ms / 1000) if self.kind == INTERVAL else TARGET_S)
