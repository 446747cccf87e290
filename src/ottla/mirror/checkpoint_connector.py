"""MirrorCheckpointConnector: where groups of the source would go on on the target, and, if asked, their offsets there.

Syncs are read from their topic, earlier checkpoints from theirs: these say how far groups were translated already, so
translation does not go backwards after a restart.
"""

import logging
import time
from collections.abc import Sequence

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError, KafkaError
from ottla.client.groups import commit
from ottla.connect import spi
from ottla.mirror.checkpoints import Checkpoints
from ottla.mirror.config import CheckpointMirrorConfig
from ottla.mirror.following import Follower, committed_of, groups_of, is_at_work
from ottla.mirror.formats import Checkpoint, OffsetSync
from ottla.mirror.measures import of_checkpoints
from ottla.mirror.own_topics import ensure_compacted
from ottla.mirror.policy import policy_of
from ottla.mirror.selection import groups_of as groups_selected
from ottla.mirror.selection import topics_of
from ottla.mirror.sides import SideError, connected
from ottla.mirror.syncs import SyncStore
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition

logger = logging.getLogger(__name__)


class _Followed:
    """The flow's own topics, and both clusters."""

    def __init__(self, config: CheckpointMirrorConfig) -> None:
        everything = config.everything
        policy = policy_of(everything)
        alias = config.source_cluster_alias
        self.source = connected(everything, "source")
        self.target = connected(everything, "target")
        self.topic = policy.checkpoints_topic(alias)
        self.checkpoints = Checkpoints(policy, topics_of(everything), alias, config.target_cluster_alias)
        self.syncs = SyncStore(keeps_history=True)
        self.groups: list[str] = []
        self.due: dict[str, float] = {}
        ensure_compacted(self.target, self.topic, config.checkpoints_topic_replication_factor)
        _catch_up(Follower(self.target, self.topic, self._checkpoint))
        on_source = config.offset_syncs_topic_location == "source"
        where = self.source if on_source else self.target
        name = policy.offset_syncs_topic(config.target_cluster_alias if on_source else alias)
        self._follower = Follower(where, name, self._sync)

    def close(self) -> None:
        self.source.close()
        self.target.close()

    def refresh(self) -> None:
        self.syncs.complete = _catch_up(self._follower) or self.syncs.complete

    def is_due(self, what: str, every_s: int, now_s: float) -> bool:
        if now_s < self.due.get(what, float("-inf")):
            return False
        self.due[what] = now_s + every_s
        return True

    def _checkpoint(self, key: bytes, value: bytes) -> None:
        self.checkpoints.replay(Checkpoint.read(key, value))

    def _sync(self, key: bytes, value: bytes) -> None:
        self.syncs.replay(OffsetSync.read(key, value))


class MirrorCheckpoint(spi.Source[CheckpointMirrorConfig]):
    def __init__(self, config: CheckpointMirrorConfig, name: str, partition: spi.Partition = {}) -> None:  # noqa: B006
        super().__init__(config, name, partition)
        self._known: _Followed | None = None

    def validate(self) -> None:
        try:
            policy_of(self.config.everything)
            for side in ("source", "target"):
                connected(self.config.everything, side).close()
        except (SideError, ValueError) as error:
            raise spi.ConfigRefused("", str(error)) from error

    def partitions(self) -> Sequence[spi.Partition]:
        if not self.config.enabled or not self.config.emit_checkpoints_enabled:
            return []
        return [{"cluster": self.config.source_cluster_alias}]

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        now_ms = time.time_ns() // 1_000_000
        last_ms = 0 if start is None else int(start.get("at", 0))
        if now_ms - last_ms < self.config.emit_checkpoints_interval_seconds * 1000:
            return spi.Read([], None)
        try:
            known = self._followed()
            news = self._news(known)
            self._sync_groups(known)
        except ClientError as error:
            raise spi.TryAgain(str(error)) from error
        rows = [spi.Row(known.topic, each.value(), each.key(), timestamp=now_ms, partition=0) for each in news]
        return spi.Read(rows, {"offset": 0, "at": now_ms})

    def observed(self, reads: Sequence[spi.Read], now_ms: int) -> Sequence[spi.Observed]:
        flow = self.config.source_cluster_alias, self.config.target_cluster_alias
        rows = [row for read in reads if isinstance(read.rows, list) for row in read.rows]
        return of_checkpoints(flow, rows, now_ms)

    def poll_interval_ms(self) -> int:
        return min(self.config.emit_checkpoints_interval_seconds, 5) * 1000

    def close(self) -> None:
        if self._known is not None:
            self._known.close()

    def _followed(self) -> _Followed:
        """Both topics are read once in a life, not once for each read."""
        if self._known is None:
            self._known = _Followed(self.config)
        return self._known

    def _news(self, known: _Followed) -> list[Checkpoint]:
        config = self.config
        now_s = time.monotonic()
        if not known.groups or (
            config.refresh_groups_enabled and known.is_due("groups", config.refresh_groups_interval_seconds, now_s)
        ):
            selected = groups_selected(config.everything)
            known.groups = [group for group in groups_of(known.source) if group in selected]
        known.refresh()
        news = []
        for group in known.groups:
            found = known.checkpoints.news(group, committed_of(known.source, group), known.syncs)
            for checkpoint in found:
                # Written in this batch; if that fails, the life that tries again has read the topic itself.
                known.checkpoints.replay(checkpoint)
            news += found
        return news

    def _sync_groups(self, known: _Followed) -> None:
        config = self.config
        if not config.sync_group_offsets_enabled:
            return
        if not known.is_due("offsets", config.sync_group_offsets_interval_seconds, time.monotonic()):
            return
        for group in known.checkpoints.groups():
            _move(known.target, group, known.checkpoints)


def _move(target: Cluster, group: str, checkpoints: Checkpoints) -> None:
    if is_at_work(target, group):
        return
    wanted = checkpoints.to_commit(group, committed_of(target, group))
    if not wanted:
        return
    outcomes = commit(target, group, {TopicPartition(*place): at.offset for place, at in wanted.items()})
    for place, refusal in outcomes.items():
        if refusal is not None:
            logger.warning("offsets of group %s for %s were not taken over: %s", group, place, refusal)


def _catch_up(follower: Follower) -> bool:
    """Whether the topic is there."""
    try:
        follower.catch_up()
    except KafkaError as error:
        if error.error != Errors.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return False
    return True
