"""Who leads a partition: the rules by which its ISR, its ELR and its leader change (KIP-966)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.metadata.delta import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from ottla.metadata.image import RECOVERED, RECOVERING, PartitionImage
from ottla.model.ids import Uuid
from ottla.protocol import messages

NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """What holds for all partitions of one topic while one event is handled."""

    may_lead: Callable[[int], bool]
    min_isr: int
    elr_enabled: bool
    unclean_allowed: bool = False
    unclean_replicas: tuple[int, ...] = ()
    """Brokers that came back from a crash: what they had acknowledged may be gone, so they leave the ELR."""


def change_partition(
    topic_id: Uuid, index: int, partition: PartitionImage, target_isr: Sequence[int], rules: ElectionRules
) -> "messages.PartitionChangeRecord | None":
    """The record that takes `partition` to `target_isr` with the leader the rules elect; None if nothing changes."""
    isr = tuple(target_isr)
    elr = _next_elr(partition, isr, rules)
    leader, unclean = _elect(partition, isr, elr, rules)
    recovery = NO_RECOVERY_CHANGE
    if leader != partition.leader:
        if leader in elr:
            # An eligible replica takes over alone; the others must catch up with it first.
            isr, elr = (leader,), tuple(r for r in elr if r != leader)
        elif unclean:
            isr, elr = (leader,), ()
            recovery = RECOVERING if partition.leader_recovery_state != RECOVERING else NO_RECOVERY_CHANGE
    if not isr and not rules.elr_enabled:
        # Without ELR the last member stays on record: it alone may be elected cleanly later.
        isr = partition.isr
    record = messages.PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=None if isr == partition.isr else list(isr),
        leader=NO_LEADER_CHANGE if leader == partition.leader else leader,
        leader_recovery_state=recovery,
        eligible_leader_replicas=None if elr == partition.elr else list(elr),
    )
    if rules.elr_enabled:
        _note_last_known_leader(record, partition)
    return None if _is_no_op(record) else record


def _next_elr(partition: PartitionImage, isr: Sequence[int], rules: ElectionRules) -> tuple[int, ...]:
    """(ISR and ELR) less the target ISR less the brokers that crashed; empty once the ISR is large enough again."""
    if not rules.elr_enabled or len(isr) >= rules.min_isr:
        return ()
    candidates = dict.fromkeys((*partition.elr, *partition.isr))
    return tuple(sorted(r for r in candidates if r not in isr and r not in rules.unclean_replicas))


def _elect(partition: PartitionImage, isr: Sequence[int], elr: Sequence[int], rules: ElectionRules) -> tuple[int, bool]:
    """The leader, and whether electing it may lose acknowledged records."""
    eligible = isr or elr
    for replica in (partition.leader, *partition.replicas):
        if replica in eligible and rules.may_lead(replica):
            return replica, False
    if rules.elr_enabled and not eligible and len(partition.last_known_elr) == 1:
        # KIP-966: with neither ISR nor ELR left the last known leader is the best guess, even where unclean election
        # is switched off.
        last = partition.last_known_elr[0]
        if rules.may_lead(last):
            return last, True
    if rules.unclean_allowed:
        for replica in partition.replicas:
            if rules.may_lead(replica):
                return replica, True
    return NO_LEADER, False


def _note_last_known_leader(record: "messages.PartitionChangeRecord", partition: PartitionImage) -> None:
    if record.leader == NO_LEADER and not partition.last_known_elr:
        record.last_known_elr = [partition.leader]
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = []


def _is_no_op(record: "messages.PartitionChangeRecord") -> bool:
    return (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )


def lead_again(topic_id: Uuid, index: int, partition: PartitionImage) -> "messages.PartitionChangeRecord":
    """The sole replica of a partition takes it up again after a restart.

    Kafka writes two changes here, leaderless and led again; nobody else could have led in between, so one is enough.
    The leader epoch grows in any case: a consumer that read records the crash took away must find out (KIP-320).
    """
    (replica,) = partition.replicas
    return messages.PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=None if partition.isr == (replica,) else [replica],
        leader=replica,
        leader_recovery_state=RECOVERED if partition.leader_recovery_state == RECOVERING else NO_RECOVERY_CHANGE,
        eligible_leader_replicas=[] if partition.elr else None,
        last_known_elr=[] if partition.last_known_elr else None,
    )
