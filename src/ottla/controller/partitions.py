"""Who leads a partition: the rules by which its ISR, its ELR, its replicas and its leader change (KIP-455, KIP-966)."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from ottla.metadata.delta import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from ottla.metadata.image import RECOVERED, RECOVERING, MetadataImage, PartitionImage
from ottla.model.ids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Uuid
from ottla.protocol import messages

NO_LEADER: Final = -1
NOBODY: Final = -1

MayLead = Callable[[int, Uuid], bool]
"""Whether a replica on this broker, in this directory, may lead."""


class Election(Enum):
    ONLINE = "a leader out of the ISR, or out of the ELR once the ISR is empty; the present one if it will do"
    PREFERRED = "the same, but the first replica comes before the present leader"
    UNCLEAN = "as ONLINE, and any live replica rather than none: records may be lost"


class ElectionRules(NamedTuple):
    """What holds for all partitions of one topic while one event is handled."""

    may_lead: MayLead
    default_directory: Callable[[int], Uuid]
    """Where a replica that a broker does not have yet will live."""
    min_isr: int
    elr_enabled: bool
    election: Election = Election.ONLINE
    unclean_replicas: tuple[int, ...] = ()
    """Brokers that came back from a crash: what they had acknowledged may be gone, so they leave the ELR."""
    directories_known: bool = True
    """Off while metadata.version is older than KIP-858."""
    bump_on_shrink: bool = False
    """KAFKA-15021: brokers before 3.6 noticed a smaller ISR only with a new leader epoch."""


class Wanted(NamedTuple):
    """What a partition is to become; None leaves that part as it is."""

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    recovery_state: int | None = None
    directories: Mapping[int, Uuid] | None = None


AS_IT_IS: Final = Wanted()


def eligible_leaders(image: MetadataImage, *, without: int = NOBODY, also: int = NOBODY) -> MayLead:
    """Active brokers with a live directory; the image does not know yet that `without` goes and `also` comes."""
    brokers = image.brokers

    def may_lead(replica: int, directory: Uuid) -> bool:
        broker = brokers.get(replica)
        if broker is None or replica == without or broker.in_controlled_shutdown:
            return False
        return (replica == also or not broker.fenced) and broker.has_directory(directory)

    return may_lead


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    broker = image.brokers.get(broker_id)
    if broker is None or len(broker.log_dirs) > 1:
        return UNASSIGNED_DIRECTORY
    return broker.log_dirs[0] if broker.log_dirs else MIGRATING_DIRECTORY


def change_partition(
    topic_id: Uuid, index: int, partition: PartitionImage, wanted: Wanted, rules: ElectionRules
) -> "messages.PartitionChangeRecord | None":
    """The record that takes `partition` to what is wanted, with the leader the rules elect; None if nothing changes."""
    target = _completed(_filled(partition, wanted))
    isr = target.isr
    elr = _next_elr(partition, target, rules)
    leader, unclean = _elect(partition, target, elr, rules)
    recovery = target.recovery_state
    if leader != partition.leader:
        if unclean:
            isr, elr, recovery = (leader,), (), RECOVERING
        elif leader in elr:
            # An eligible replica takes over alone; the others must catch up with it first.
            isr, elr = (leader,), tuple(r for r in elr if r != leader)
    if not isr and not rules.elr_enabled:
        # Without ELR the last member stays on record: it alone may be elected cleanly later.
        isr = partition.isr
    record = messages.PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=None if isr == partition.isr else list(isr),
        leader=leader if _leads_anew(partition, target, isr, leader, rules) else NO_LEADER_CHANGE,
        leader_recovery_state=NO_RECOVERY_CHANGE if recovery == partition.leader_recovery_state else recovery,
        eligible_leader_replicas=None if elr == partition.elr else list(elr),
    )
    if rules.elr_enabled:
        _note_last_known_leader(record, partition)
    _note_assignment(record, partition, target, rules)
    return None if _is_no_op(record) else record


class _Target(NamedTuple):
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    recovery_state: int
    directories: Mapping[int, Uuid]


_NO_DIRECTORIES: Final[Mapping[int, Uuid]] = {}


def _filled(partition: PartitionImage, wanted: Wanted) -> _Target:
    isr, replicas, removing, adding, recovery, directories = wanted
    return _Target(
        partition.isr if isr is None else isr,
        partition.replicas if replicas is None else replicas,
        partition.removing_replicas if removing is None else removing,
        partition.adding_replicas if adding is None else adding,
        partition.leader_recovery_state if recovery is None else recovery,
        directories or _NO_DIRECTORIES,
    )


def _completed(target: _Target) -> _Target:
    """A reassignment ends as soon as the ISR shows that those who stay can do without those who leave."""
    removing, adding = target.removing, target.adding
    if not removing and not adding:
        return target
    isr = tuple(r for r in target.isr if r not in removing)
    replicas = tuple(r for r in target.replicas if r not in removing)
    if not isr or not replicas or any(r not in isr for r in adding):
        return target
    if len(adding) < len(removing) and any(r not in isr for r in replicas):
        # Fewer replicas than before: ending early could leave a smaller ISR than the partition has now.
        return target
    return target._replace(isr=isr, replicas=replicas, removing=(), adding=())


def _next_elr(partition: PartitionImage, target: _Target, rules: ElectionRules) -> tuple[int, ...]:
    """(ISR and ELR) less the target ISR less the brokers that crashed; empty once the ISR is large enough again."""
    isr = target.isr
    if not rules.elr_enabled or len(isr) >= rules.min_isr:
        return ()
    candidates = dict.fromkeys((*partition.elr, *partition.isr))
    unclean = rules.unclean_replicas
    return tuple(sorted(r for r in candidates if r not in isr and r not in unclean and r in target.replicas))


def _elect(partition: PartitionImage, target: _Target, elr: Sequence[int], rules: ElectionRules) -> tuple[int, bool]:
    """The leader, and whether electing it may lose acknowledged records."""
    eligible = target.isr or elr
    replicas = target.replicas
    first = replicas[0] if rules.election is Election.PREFERRED else partition.leader
    for replica in (first, partition.leader, *replicas):
        if replica in eligible and _may_lead(partition, target, rules, replica):
            return replica, False
    if rules.elr_enabled and not eligible and len(partition.last_known_elr) == 1:
        # KIP-966: with neither ISR nor ELR left the last known leader is the best guess, even where unclean election
        # is switched off.
        last = partition.last_known_elr[0]
        if last in replicas and _may_lead(partition, target, rules, last):
            return last, True
    if rules.election is Election.UNCLEAN:
        for replica in replicas:
            if _may_lead(partition, target, rules, replica):
                return replica, True
    return NO_LEADER, False


def _may_lead(partition: PartitionImage, target: _Target, rules: ElectionRules, replica: int) -> bool:
    return rules.may_lead(replica, _directory(partition, target, rules, replica))


def _directory(partition: PartitionImage, target: _Target, rules: ElectionRules, replica: int) -> Uuid:
    if replica in target.directories:
        return target.directories[replica]
    return partition.directory(replica) if replica in partition.replicas else rules.default_directory(replica)


def _leads_anew(
    partition: PartitionImage, target: _Target, isr: Sequence[int], leader: int, rules: ElectionRules
) -> bool:
    """Whether a new leader epoch begins. One also does for the same leader when a replica was taken away from it."""
    if leader != partition.leader:
        return True
    if target.replicas != partition.replicas and any(r not in target.replicas for r in partition.replicas):
        return True
    return rules.bump_on_shrink and any(r not in isr for r in partition.isr)


def _note_last_known_leader(record: "messages.PartitionChangeRecord", partition: PartitionImage) -> None:
    if record.leader == NO_LEADER and not partition.last_known_elr and partition.leader >= 0:
        record.last_known_elr = [partition.leader]
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = []


def _note_assignment(
    record: "messages.PartitionChangeRecord", partition: PartitionImage, target: _Target, rules: ElectionRules
) -> None:
    unchanged = (partition.replicas, partition.removing_replicas, partition.adding_replicas)
    if target[1:4] == unchanged and not target.directories:
        return
    if rules.directories_known and (target.directories or target.replicas != partition.replicas):
        directories = tuple([_directory(partition, target, rules, r) for r in target.replicas])
        record.directories = None if directories == partition.directories else list(directories)
    record.replicas = None if target.replicas == partition.replicas else list(target.replicas)
    record.removing_replicas = None if target.removing == partition.removing_replicas else list(target.removing)
    record.adding_replicas = None if target.adding == partition.adding_replicas else list(target.adding)


def _is_no_op(record: "messages.PartitionChangeRecord") -> bool:
    return (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.directories is None
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
