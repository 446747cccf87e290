"""The states of a transactional id, with the numbers of `__transaction_state` and the names of ListTransactions."""

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """As DescribeTransactions and ListTransactions spell it: PrepareCommit."""
        return TITLES[self]

    @property
    def is_prepared(self) -> bool:
        """The outcome is decided and logged; only markers are missing."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Nothing is open: a transactional id may be forgotten in these states only."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


TITLES: Final = {state: "".join(word.title() for word in state.name.split("_")) for state in TransactionState}
BY_TITLE: Final = {title: state for state, title in TITLES.items()}

PREVIOUS: Final[dict[TransactionState, tuple[TransactionState, ...]]] = {
    TransactionState.EMPTY: (
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ),
    TransactionState.ONGOING: (
        TransactionState.ONGOING,
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ),
    TransactionState.PREPARE_COMMIT: (TransactionState.ONGOING,),
    TransactionState.PREPARE_ABORT: (
        TransactionState.ONGOING,
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ),
    TransactionState.COMPLETE_COMMIT: (TransactionState.PREPARE_COMMIT,),
    TransactionState.COMPLETE_ABORT: (TransactionState.PREPARE_ABORT,),
}
"""From where each logged state may be entered. Dead and PrepareEpochFence are never logged."""
