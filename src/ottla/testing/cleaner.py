"""The simulated twin of `ottla.runtime.cleaner`: rounds over a disk that no other process sees."""

from ottla.storage.cleaner.facts import Facts, LastRecords, Mapped, Rewritten
from ottla.storage.cleaner.rewrite import Round
from ottla.storage.fs import Filesystem


class CleanerInPlace:
    __slots__ = ("_fs", "_round")

    def __init__(self, fs: Filesystem) -> None:
        self._fs = fs
        self._round: Round | None = None

    def begin(self, facts: Facts) -> Mapped:
        self._round = Round(facts, self._fs, lambda _: None)
        return self._round.map_keys()

    def rewrite(self, number: int, last_records: LastRecords) -> Rewritten:
        assert self._round is not None
        replacement = self._round.rewrite(number, last_records)
        return Rewritten(replacement, self._round.stats)

    def kill(self) -> None:
        """A simulated thread does its work in one piece: there is nothing under way."""

    def close(self) -> None:
        self._round = None
