"""What the target lacks: topics and partitions of the source, their settings, and who may read them.

Partitions are added and never taken away; a topic that was deleted on the source stays on the target, as in
MirrorMaker. Facts come in as values, what is to be done goes out as values: the connector asks and acts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.mirror.policy import Policy
from ottla.mirror.selection import Selection, TopicSettings
from ottla.model.acls import WILDCARD, Acl, Pattern, PermissionType
from ottla.model.permissions import Operation, Resource

_STATIC_BROKER: Final = 4
"""ConfigSource STATIC_BROKER_CONFIG: where the source's brokers were told so, which is no matter of the topic."""
_DEFAULT: Final = 5


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a topic as DescribeConfigs tells it."""

    name: str
    value: str | None
    source: int
    read_only: bool = False
    sensitive: bool = False

    @property
    def is_default(self) -> bool:
        return self.source == _DEFAULT


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class Lacking:
    """What the target has to be given before records can be copied."""

    topics: list[NewTopic]
    partitions: dict[str, int]
    """Remote topic to the number that it has to have in all."""


@dataclass(frozen=True, slots=True)
class Remote:
    policy: Policy
    selection: Selection
    settings: TopicSettings
    source: str

    def lacking(
        self,
        there: Mapping[str, int],
        here: Mapping[str, int],
        settings: Mapping[str, Iterable[Setting]],
    ) -> Lacking:
        """`there`: the topics to copy and their partitions; `here`: those of the target; `settings`: of the former."""
        topics = []
        partitions = {}
        for topic, count in sorted(there.items()):
            name = self.policy.remote_topic(self.source, topic)
            if name not in here:
                topics.append(NewTopic(name, count, self._at_creation(settings.get(topic, ()))))
            elif here[name] < count:
                partitions[name] = count
        return Lacking(topics, partitions)

    def alterations(self, settings: Iterable[Setting]) -> dict[str, str | None]:
        """What IncrementalAlterConfigs is asked for on the remote topic: a value to set, None to delete."""
        return {
            setting.name: None if setting.is_default and not self.settings.defaults_from_source else setting.value
            for setting in settings
            if self._is_copied(setting)
        }

    def acls(self, acls: Iterable[Acl]) -> list[Acl]:
        """Who may do what with the remote topics: what the source says of the topics that are copied, but nobody may
        write to a copy. A wildcard says nothing of the source's topics alone and is left out."""
        return [
            self._downgraded(acl)
            for acl in acls
            if acl.resource == Resource.TOPIC
            and acl.pattern == Pattern.LITERAL
            and acl.name != WILDCARD
            and not (acl.permission == PermissionType.ALLOW and acl.operation == Operation.WRITE)
            and acl.name in self.selection
        ]

    def _at_creation(self, settings: Iterable[Setting]) -> dict[str, str]:
        return {
            setting.name: setting.value
            for setting in settings
            if setting.value is not None
            and (not setting.is_default or self.settings.defaults_from_source)
            and self._is_copied(setting)
        }

    def _is_copied(self, setting: Setting) -> bool:
        return (
            not setting.read_only
            and not setting.sensitive
            and setting.source != _STATIC_BROKER
            and setting.name in self.settings.names
        )

    def _downgraded(self, acl: Acl) -> Acl:
        everything = acl.permission == PermissionType.ALLOW and acl.operation == Operation.ALL
        operation = Operation.READ if everything else acl.operation
        return acl._replace(name=self.policy.remote_topic(self.source, acl.name), operation=operation)
