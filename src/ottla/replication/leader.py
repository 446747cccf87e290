"""The leader's side of one partition: its epoch, who is in sync, and up to where records are committed.

Deals in offsets only; the log is someone else's. With one replica the high watermark follows the leader's own log.
Followers, ISR changes and eligible leader replicas join this class with replication.
"""

from ottla.model.ids import BrokerId, LeaderEpoch, Offset


class PartitionLeader:
    __slots__ = ("broker_id", "epoch_start_offset", "high_watermark", "isr", "leader_epoch", "partition_epoch")

    def __init__(
        self,
        broker_id: BrokerId,
        leader_epoch: LeaderEpoch,
        partition_epoch: int,
        isr: tuple[BrokerId, ...],
        high_watermark: Offset,
        log_end_offset: Offset,
    ) -> None:
        self.broker_id = broker_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.isr = isr
        self.epoch_start_offset = log_end_offset
        self.high_watermark: int = high_watermark

    def log_end_moved(self, durable_end: int) -> bool:
        """The leader's own copy reaches `durable_end` now. True if the high watermark moved.

        A leader alone in its ISR commits by itself: min.insync.replicas counts at most the replicas there are.
        """
        if len(self.isr) != 1 or durable_end <= self.high_watermark:
            return False
        self.high_watermark = durable_end
        return True

    def check_epoch(self, current_leader_epoch: int) -> int:
        """KIP-320: -1 if the client is behind (fenced), 1 if it knows a later epoch than we do, 0 if all is well."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return 0
        return -1 if current_leader_epoch < self.leader_epoch else 1
