"""MirrorHeartbeatConnector: a record a second on the target. Copied on by the flows that read from there, it tells how
old what they bring is, also when nobody writes anything else."""

import time
from collections.abc import Sequence
from typing import Final

from ottla.connect import spi
from ottla.mirror.config import HeartbeatMirrorConfig
from ottla.mirror.formats import Heartbeat
from ottla.mirror.own_topics import ensure_compacted
from ottla.mirror.policy import policy_of
from ottla.mirror.sides import SideError, client_settings, connected

_MADE: Final[set[tuple[str, str]]] = set()
"""Targets and topics. Not connectors: the flows of a mirror are in one process, and each has one of this name."""


class MirrorHeartbeat(spi.Source[HeartbeatMirrorConfig]):
    def validate(self) -> None:
        try:
            connected(self.config.everything, "target").close()
        except (SideError, ValueError) as error:
            raise spi.ConfigRefused("", str(error)) from error

    def partitions(self) -> Sequence[spi.Partition]:
        if not self.config.emit_heartbeats_enabled:
            return []
        given = self.config.everything
        topic = policy_of(given).heartbeats_topic()
        place = (client_settings(given, "target", "admin").get("bootstrap.servers", ""), topic)
        if place not in _MADE:
            with connected(given, "target") as target:
                ensure_compacted(target, topic, self.config.heartbeats_topic_replication_factor)
            _MADE.add(place)
        return [
            {
                "sourceClusterAlias": self.config.source_cluster_alias,
                "targetClusterAlias": self.config.target_cluster_alias,
            }
        ]

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        now_ms = time.time_ns() // 1_000_000
        last_ms = 0 if start is None else int(start.get("at", 0))
        if now_ms - last_ms < self.config.emit_heartbeats_interval_seconds * 1000:
            return spi.Read([], None)
        beat = Heartbeat(self.config.source_cluster_alias, self.config.target_cluster_alias, now_ms)
        topic = policy_of(self.config.everything).heartbeats_topic()
        # `offset` is always 0, as MirrorMaker has it.
        return spi.Read([spi.Row(topic, beat.value(), beat.key(), timestamp=now_ms)], {"offset": 0, "at": now_ms})

    def poll_interval_ms(self) -> int:
        return self.config.emit_heartbeats_interval_seconds * 1000
