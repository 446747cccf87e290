"""The controller: routes each command to its decider and replays what was appended.

Its image runs ahead of the committed one: a command sees everything that was appended before it, committed or not. If
an append fails the image is untouched; if leadership is lost the whole machine is thrown away.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.controller import brokers, configs, features, producer_ids, topics
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.core import Decision
from ottla.model.ids import Millis, Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import Message


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a decision needs besides the command: time, ids and offsets are given, never fetched."""

    now: Millis
    next_offset: int
    kraft_version: int = 0
    fresh_ids: Sequence[Uuid] = ()
    describable: Container[str] | None = None


class Controller:
    __slots__ = ("_colliding", "image", "sessions", "settings")

    def __init__(self, image: MetadataImage, settings: Settings) -> None:
        self.image = image
        self.settings = settings
        self.sessions = brokers.Sessions(Millis(settings.get_int("broker.session.timeout.ms")), settings.node_id)
        self._colliding: dict[str, list[str]] = {}
        for name in image.topics:
            self._note_name(name)

    def decide(self, command: Message, context: CommandContext) -> Decision[Message]:
        """Raises KeyError for a command that is none of the controller's."""
        return _DECIDERS[type(command).__name__](self, command, context)

    @staticmethod
    def takes(command: Message) -> bool:
        return type(command).__name__ in _DECIDERS

    def tick(self, now: Millis) -> Decision[None]:
        """Fences one broker whose session ran out; one at a time, so that each sees the effect of the one before."""
        for broker_id in self.sessions.expired(self.image.brokers.values(), now):
            return Decision(None, tuple(brokers.fence(self.image, self.settings, broker_id)))
        return Decision(None)

    def replay(self, records: Sequence[Message], *, base_offset: int, epoch: int, timestamp: int) -> MetadataDelta:
        """Takes records that are in the log now; the returned delta leads from the former image to the present one."""
        before = self.image
        delta = MetadataDelta(before)
        for offset, record in enumerate(records, base_offset):
            delta.replay(record)
            if isinstance(record, messages.RegisterBrokerRecord):
                self.sessions.registered(record.broker_id, offset)
        self.image = delta.apply(base_offset + len(records) - 1, epoch, timestamp)
        for topic in delta.deleted_topics.values():
            self._forget_name(topic.name)
        for name in delta.created_topics:
            self._note_name(name)
        for broker_id, broker in delta.changed_brokers.items():
            if broker is None:
                self.sessions.forget(broker_id)
        return delta

    def _note_name(self, name: str) -> None:
        unified = topics.unified_name(name)
        if unified is not None:
            self._colliding.setdefault(unified, []).append(name)

    def _forget_name(self, name: str) -> None:
        unified = topics.unified_name(name)
        if unified is not None:
            self._colliding[unified].remove(name)
            if not self._colliding[unified]:
                del self._colliding[unified]

    # One line for each command

    def _create_topics(self, command: "messages.CreateTopicsRequest", context: CommandContext) -> Decision[Message]:
        new = topics.NewTopics(command, context.fresh_ids, context.describable)
        return topics.create_topics(self.image, self.settings, self._colliding, new)

    def _delete_topics(self, command: "messages.DeleteTopicsRequest", context: CommandContext) -> Decision[Message]:
        return topics.delete_topics(self.image, self.settings, command)

    def _create_partitions(
        self, command: "messages.CreatePartitionsRequest", context: CommandContext
    ) -> Decision[Message]:
        return topics.create_partitions(self.image, command)

    def _alter_configs(self, command: "messages.AlterConfigsRequest", context: CommandContext) -> Decision[Message]:
        return configs.alter_configs(self.image, self.settings, command)

    def _incremental_alter_configs(
        self, command: "messages.IncrementalAlterConfigsRequest", context: CommandContext
    ) -> Decision[Message]:
        return configs.incremental_alter_configs(self.image, self.settings, command)

    def _update_features(self, command: "messages.UpdateFeaturesRequest", context: CommandContext) -> Decision[Message]:
        return features.update_features(
            self.image,
            self.settings,
            command,
            kraft_version=context.kraft_version,
        )

    def _allocate_producer_ids(
        self, command: "messages.AllocateProducerIdsRequest", context: CommandContext
    ) -> Decision[Message]:
        return producer_ids.allocate(self.image, command)

    def _register_broker(
        self, command: "messages.BrokerRegistrationRequest", context: CommandContext
    ) -> Decision[Message]:
        return brokers.register(
            self.image,
            self.settings,
            self.sessions,
            command,
            next_offset=context.next_offset,
            now=context.now,
            kraft_version=context.kraft_version,
        )

    def _broker_heartbeat(
        self, command: "messages.BrokerHeartbeatRequest", context: CommandContext
    ) -> Decision[Message]:
        self.sessions.heard(command.broker_id, context.now)
        return brokers.heartbeat(self.image, self.settings, self.sessions, command)

    def _unregister_broker(
        self, command: "messages.UnregisterBrokerRequest", context: CommandContext
    ) -> Decision[Message]:
        return brokers.unregister(self.image, self.settings, command)

    def _register_controller(
        self, command: "messages.ControllerRegistrationRequest", context: CommandContext
    ) -> Decision[Message]:
        return brokers.register_controller(self.image, command)


_DECIDERS: Final[Mapping[str, Callable[..., Decision[Message]]]] = {
    "CreateTopicsRequest": Controller._create_topics,
    "DeleteTopicsRequest": Controller._delete_topics,
    "CreatePartitionsRequest": Controller._create_partitions,
    "AlterConfigsRequest": Controller._alter_configs,
    "IncrementalAlterConfigsRequest": Controller._incremental_alter_configs,
    "UpdateFeaturesRequest": Controller._update_features,
    "AllocateProducerIdsRequest": Controller._allocate_producer_ids,
    "BrokerRegistrationRequest": Controller._register_broker,
    "BrokerHeartbeatRequest": Controller._broker_heartbeat,
    "UnregisterBrokerRequest": Controller._unregister_broker,
    "ControllerRegistrationRequest": Controller._register_controller,
}
"""By name, so that starting a node does not load the codec of every command."""
