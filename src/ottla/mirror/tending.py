"""Keeps the target as the source is: topics, partitions, settings, ACLs. `remote` decides, this asks and acts.

Each part has its own interval, as in MirrorMaker. What fails is told and tried again at the next turn: a topic that
cannot be made now must not stop the copying of the others.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ottla.client.acls import create_acls, describe_acls
from ottla.client.admin import (
    TOPIC,
    ConfigChange,
    NewTopic,
    alter_configs,
    create_partitions,
    create_topics,
    describe_configs,
)
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.mirror.remote import Remote, Setting
from ottla.model.acls import AclFilter
from ottla.model.errors import Errors
from ottla.model.permissions import Resource

logger = logging.getLogger(__name__)

_SET, _DELETE = 0, 1


@dataclass(slots=True)
class Tending:
    """`refreshed` at the interval of refresh.topics, the two syncs at theirs."""

    remote: Remote
    source: Cluster
    target: Cluster
    replication_factor: int
    _without_acls: bool = field(default=False)

    def close(self) -> None:
        self.source.close()
        self.target.close()

    def refreshed(self) -> dict[str, int]:
        """The topics to copy and their partitions, once the target has them. Those that it could not be given are left
        out: there is nowhere to copy them to."""
        wanted = self.remote.selection.of(_topics(self.source))
        there = {topic: len(self.source.partitions(topic)) for topic in wanted}
        names = {topic: self.remote.policy.remote_topic(self.remote.source, topic) for topic in wanted}
        known = _topics(self.target)
        here = {name: len(self.target.partitions(name)) for name in sorted(names.values()) if name in known}
        new = [topic for topic in wanted if names[topic] not in here]
        lacking = self.remote.lacking(there, here, self._settings(new) if new else {})
        made = self._make([NewTopic(t.name, t.partitions, self.replication_factor, t.settings) for t in lacking.topics])
        here |= {topic.name: topic.partitions for topic in lacking.topics if topic.name in made}
        here |= self._extend(lacking.partitions)
        return {topic: min(count, here[names[topic]]) for topic, count in there.items() if names[topic] in here}

    def sync_settings(self, topics: Sequence[str]) -> None:
        for topic, settings in self._settings(topics).items():
            name = self.remote.policy.remote_topic(self.remote.source, topic)
            wanted = self.remote.alterations(settings)
            changes = [ConfigChange(key, _DELETE if value is None else _SET, value) for key, value in wanted.items()]
            try:
                alter_configs(self.target, TOPIC, name, changes)
            except KafkaError as error:
                logger.warning("settings of %s were not taken over: %s", name, error)

    def sync_acls(self) -> None:
        try:
            found = describe_acls(self.source, AclFilter(resource=Resource.TOPIC))
        except KafkaError as error:
            if error.error != Errors.SECURITY_DISABLED:
                raise
            if not self._without_acls:
                logger.info("the source has no ACLs to take over; sync.topic.acls.enabled=false spares the question")
            self._without_acls = True
            return
        wanted = self.remote.acls(found)
        if not wanted:
            return
        for acl, refusal in zip(wanted, create_acls(self.target, wanted), strict=True):
            if refusal is not None:
                logger.warning("an ACL of %s was not taken over: %s", acl.name, refusal)

    def _settings(self, topics: Sequence[str]) -> Mapping[str, list[Setting]]:
        found: dict[str, list[Setting]] = {}
        for topic, answer in describe_configs(self.source, TOPIC, topics).items():
            if isinstance(answer, KafkaError):
                logger.warning("settings of %s cannot be read: %s", topic, answer)
                continue
            found[topic] = [
                Setting(each.name, each.value, each.config_source, each.read_only, each.is_sensitive) for each in answer
            ]
        return found

    def _make(self, topics: Sequence[NewTopic]) -> set[str]:
        if not topics:
            return set()
        made = set()
        for name, outcome in create_topics(self.target, topics).items():
            if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
                logger.warning("%s could not be made on the target: %s", name, outcome)
            else:
                made.add(name)
        return made

    def _extend(self, counts: Mapping[str, int]) -> dict[str, int]:
        extended = {}
        for name, count in counts.items():
            try:
                create_partitions(self.target, name, count)
            except KafkaError as error:
                logger.warning("%s has fewer partitions than its source: %s", name, error)
            else:
                extended[name] = count
        return extended


def _topics(cluster: Cluster) -> list[str]:
    return sorted(topic.name for topic in cluster.metadata().topics if topic.name and not topic.error_code)
