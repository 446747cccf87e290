"""Records into the next image, with a note of what changed on the way.

A delta copies each mapping it touches once, however many records it replays, so one commit costs one copy of the topic
table and a record costs none. `replay` trusts the log: a record that contradicts the image is a bug or a foreign log we
must not guess about, and raises ReplayError.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, Generic, TypeVar

from ottla.metadata.image import (
    KRAFT_VERSION,
    METADATA_VERSION,
    TOPIC_RESOURCE,
    BrokerRegistration,
    ConfigKey,
    ControllerRegistration,
    Endpoint,
    MetadataImage,
    PartitionImage,
    QuotaEntity,
    ScramKey,
    TopicImage,
    VersionRange,
)
from ottla.model.ids import ZERO_UUID, Uuid
from ottla.protocol import messages

NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1

K = TypeVar("K")
V = TypeVar("V")


class ReplayError(ValueError):
    """A record that cannot follow the ones before it."""


class _Copied(Generic[K, V]):
    """A mapping of the base image until it is first written to, then a copy of it."""

    __slots__ = ("_is_mine", "now")

    def __init__(self, original: Mapping[K, V]) -> None:
        self.now = original
        self._is_mine = False

    def writable(self) -> dict[K, V]:
        if not self._is_mine:
            self.now = dict(self.now)
            self._is_mine = True
        assert isinstance(self.now, dict)
        return self.now


class _Draft:
    """The mappings of the next image."""

    __slots__ = (
        "acls",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "scram",
        "topics",
        "topics_by_id",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.features = _Copied(base.features)
        self.brokers = _Copied(base.brokers)
        self.controllers = _Copied(base.controllers)
        self.topics = _Copied(base.topics)
        self.topics_by_id = _Copied(base.topics_by_id)
        self.configs = _Copied(base.configs)
        self.client_quotas = _Copied(base.client_quotas)
        self.acls = _Copied(base.acls)
        self.scram = _Copied(base.scram)
        self.delegation_tokens = _Copied(base.delegation_tokens)


class MetadataDelta:
    """Everything since `base`. The attributes named changed_*, created_* and deleted_* tell readers what to look at."""

    __slots__ = (
        "_draft",
        "_owned",
        "_replayed",
        "base",
        "changed_acls",
        "changed_brokers",
        "changed_configs",
        "changed_controllers",
        "changed_partitions",
        "changed_security",
        "created_topics",
        "deleted_topics",
        "features_changed",
        "next_producer_id",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.created_topics: dict[str, Uuid] = {}
        self.deleted_topics: dict[Uuid, TopicImage] = {}
        """As they were in `base`; a topic both created and deleted in here is in neither."""
        self.changed_partitions: dict[Uuid, dict[int, PartitionImage]] = {}
        """New ones and altered ones of topics that still exist."""
        self.changed_configs: dict[ConfigKey, None] = {}
        self.changed_brokers: dict[int, BrokerRegistration | None] = {}
        """None for a broker that was unregistered."""
        self.changed_controllers: dict[int, ControllerRegistration] = {}
        self.changed_acls: dict[Uuid, messages.AccessControlEntryRecord | None] = {}
        """None for an entry that was removed; of one that came and went in here too."""
        self.changed_security: dict[str, None] = {}
        """Any of acls, client_quotas, delegation_tokens, scram."""
        self.features_changed = False
        self.next_producer_id = base.next_producer_id
        self._draft = _Draft(base)
        self._replayed = 0
        self._owned: dict[Uuid, dict[int, PartitionImage]] = {}

    @property
    def is_empty(self) -> bool:
        return self._replayed == 0

    def replay_all(self, records: Iterable[object]) -> None:
        for record in records:
            self.replay(record)

    def replay(self, record: object) -> None:
        handler = _HANDLERS.get(type(record).__name__)
        if handler is None:
            raise ReplayError(f"{type(record).__name__} is not a record of the metadata log")
        handler(self, record)
        self._replayed += 1

    def apply(self, offset: int, epoch: int, timestamp: int) -> MetadataImage:
        """The next image. The delta must not be replayed into afterwards: the image owns its mappings now."""
        self._seal_topics()
        draft = self._draft
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            timestamp=timestamp,
            cluster_id=self.base.cluster_id,
            features=draft.features.now,
            brokers=draft.brokers.now,
            controllers=draft.controllers.now,
            topics=draft.topics.now,
            topics_by_id=draft.topics_by_id.now,
            configs=draft.configs.now,
            next_producer_id=self.next_producer_id,
            client_quotas=draft.client_quotas.now,
            acls=draft.acls.now,
            scram=draft.scram.now,
            delegation_tokens=draft.delegation_tokens.now,
        )

    # Topics

    def _topic(self, topic_id: Uuid) -> TopicImage:
        found = self._draft.topics_by_id.now.get(topic_id)
        if found is None:
            raise ReplayError(f"no topic has the id {topic_id.hex()}")
        return found

    def _partitions(self, topic_id: Uuid) -> dict[int, PartitionImage]:
        """The partitions of a topic, ready to be written to: copied once for each topic, sealed by `apply`."""
        mine = self._owned.get(topic_id)
        if mine is None:
            mine = self._owned[topic_id] = dict(self._topic(topic_id).partitions)
        return mine

    def _seal_topics(self) -> None:
        if not self._owned:
            return
        by_id = self._draft.topics_by_id.writable()
        by_name = self._draft.topics.writable()
        for topic_id, partitions in self._owned.items():
            topic = by_id[topic_id]._replace(partitions=partitions)
            by_id[topic_id] = by_name[topic.name] = topic
        self._owned = {}

    def _replay_topic(self, record: "messages.TopicRecord") -> None:
        by_name = self._draft.topics.writable()
        if record.name in by_name:
            raise ReplayError(f"topic {record.name} is created twice")
        topic_id = Uuid(record.topic_id)
        by_id = self._draft.topics_by_id.writable()
        partitions: dict[int, PartitionImage] = {}
        by_name[record.name] = by_id[topic_id] = TopicImage(record.name, topic_id, partitions)
        self._owned[topic_id] = partitions
        self.created_topics[record.name] = topic_id

    def _replay_remove_topic(self, record: "messages.RemoveTopicRecord") -> None:
        topic_id = Uuid(record.topic_id)
        topic = self._topic(topic_id)
        del self._draft.topics.writable()[topic.name]
        del self._draft.topics_by_id.writable()[topic_id]
        self._owned.pop(topic_id, None)
        self.changed_partitions.pop(topic_id, None)
        if self.created_topics.get(topic.name) == topic_id:
            del self.created_topics[topic.name]
        if topic_id in self.base.topics_by_id:
            self.deleted_topics[topic_id] = self.base.topics_by_id[topic_id]
        # Kafka writes no ConfigRecord for the configs of a deleted topic: they go with it.
        if (TOPIC_RESOURCE, topic.name) in self._draft.configs.now:
            del self._draft.configs.writable()[TOPIC_RESOURCE, topic.name]
            self.changed_configs[TOPIC_RESOURCE, topic.name] = None

    def _replay_partition(self, record: "messages.PartitionRecord") -> None:
        self._set_partition(
            Uuid(record.topic_id),
            record.partition_id,
            PartitionImage(
                replicas=_shared(tuple(record.replicas)),
                directories=directories_of(record.directories, len(record.replicas)),
                isr=_shared(tuple(record.isr)),
                removing_replicas=tuple(record.removing_replicas or ()),
                adding_replicas=tuple(record.adding_replicas or ()),
                elr=tuple(record.eligible_leader_replicas or ()),
                last_known_elr=tuple(record.last_known_elr or ()),
                leader=record.leader,
                leader_recovery_state=record.leader_recovery_state,
                leader_epoch=record.leader_epoch,
                partition_epoch=record.partition_epoch,
            ),
        )

    def _replay_partition_change(self, record: "messages.PartitionChangeRecord") -> None:
        topic_id = Uuid(record.topic_id)
        before = self._partitions(topic_id).get(record.partition_id)
        if before is None:
            raise ReplayError(
                f"partition {record.partition_id} of {self._topic(topic_id).name} changes but is not there"
            )
        self._set_partition(topic_id, record.partition_id, merged(before, record))

    def _set_partition(self, topic_id: Uuid, index: int, partition: PartitionImage) -> None:
        self._partitions(topic_id)[index] = partition
        changed = self.changed_partitions.get(topic_id)
        if changed is None:
            changed = self.changed_partitions[topic_id] = {}
        changed[index] = partition

    def _replay_clear_elr(self, record: "messages.ClearElrRecord") -> None:
        topics = self._draft.topics.now
        if record.topic_name and record.topic_name not in topics:
            raise ReplayError(
                f"no topic is named {record.topic_name}, so its eligible leader replicas cannot be cleared"
            )
        names = [record.topic_name] if record.topic_name else list(topics)
        for name in names:
            topic = topics[name]
            partitions = self._owned.get(topic.id, topic.partitions)
            for index in [i for i, p in partitions.items() if p.elr or p.last_known_elr]:
                before = partitions[index]
                cleared = before._replace(elr=(), last_known_elr=(), partition_epoch=before.partition_epoch + 1)
                self._set_partition(topic.id, index, cleared)

    # Brokers and controllers

    def _replay_register_broker(self, record: "messages.RegisterBrokerRecord") -> None:
        self._set_broker(
            BrokerRegistration(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=Uuid(record.incarnation_id),
                listeners=_endpoints(record.end_points),
                features=_ranges(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                log_dirs=tuple(Uuid(d) for d in record.log_dirs),
                cordoned_log_dirs=_optional_dirs(record.cordoned_log_dirs),
                is_migrating_zk_broker=record.is_migrating_zk_broker,
            )
        )

    def _set_broker(self, broker: BrokerRegistration) -> None:
        self._draft.brokers.writable()[broker.id] = broker
        self.changed_brokers[broker.id] = broker

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        found = self._draft.brokers.now.get(broker_id)
        if found is None or found.epoch != epoch:
            raise ReplayError(f"broker {broker_id} is not registered with epoch {epoch}")
        return found

    def _replay_unregister_broker(self, record: "messages.UnregisterBrokerRecord") -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self._draft.brokers.writable()[record.broker_id]
        self.changed_brokers[record.broker_id] = None

    def _replay_fence_broker(self, record: "messages.FenceBrokerRecord") -> None:
        self._set_broker(self._broker(record.id, record.epoch)._replace(fenced=True))

    def _replay_unfence_broker(self, record: "messages.UnfenceBrokerRecord") -> None:
        self._set_broker(self._broker(record.id, record.epoch)._replace(fenced=False))

    def _replay_registration_change(self, record: "messages.BrokerRegistrationChangeRecord") -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
            raise ReplayError(f"a registration change of broker {broker.id} carries a value nobody knows: {record!r}")
        if record.fenced:
            broker = broker._replace(fenced=record.fenced == 1)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=True)
        if record.log_dirs:
            broker = broker._replace(log_dirs=tuple(Uuid(d) for d in record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned_log_dirs=_optional_dirs(record.cordoned_log_dirs))
        self._set_broker(broker)

    def _replay_register_controller(self, record: "messages.RegisterControllerRecord") -> None:
        controller = ControllerRegistration(
            id=record.controller_id,
            incarnation_id=Uuid(record.incarnation_id),
            listeners=_endpoints(record.end_points),
            features=_ranges(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )
        self._draft.controllers.writable()[controller.id] = controller
        self.changed_controllers[controller.id] = controller

    # Configs, features, producer ids

    def _replay_config(self, record: "messages.ConfigRecord") -> None:
        key = (record.resource_type, record.resource_name)
        configs = self._draft.configs.writable()
        # A copy for each record: a resource holds a few dozen entries at most.
        entries = dict(configs.get(key, {}))
        if record.value is None:
            entries.pop(record.name, None)
        else:
            entries[record.name] = record.value
        if entries:
            configs[key] = entries
        else:
            configs.pop(key, None)
        self.changed_configs[key] = None

    def _replay_feature_level(self, record: "messages.FeatureLevelRecord") -> None:
        # KAFKA-18979: a level of kraft.version in the log is a mistake of old versions; the quorum knows the true one.
        if record.name == KRAFT_VERSION:
            return
        features = self._draft.features.writable()
        if record.feature_level == 0 and record.name != METADATA_VERSION:
            features.pop(record.name, None)
        else:
            features[record.name] = record.feature_level
        self.features_changed = True

    def _replay_producer_ids(self, record: "messages.ProducerIdsRecord") -> None:
        if record.next_producer_id <= self.next_producer_id:
            raise ReplayError(f"producer ids go back from {self.next_producer_id} to {record.next_producer_id}")
        self.next_producer_id = record.next_producer_id

    # Security and quotas: kept whole, so that a foreign log replays without loss and snapshots back

    def _replay_client_quota(self, record: "messages.ClientQuotaRecord") -> None:
        entity: QuotaEntity = tuple(sorted((e.entity_type, e.entity_name) for e in record.entity))
        quotas = self._draft.client_quotas.writable()
        values = dict(quotas.get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            quotas[entity] = values
        else:
            quotas.pop(entity, None)
        self.changed_security["client_quotas"] = None

    def _replay_acl(self, record: "messages.AccessControlEntryRecord") -> None:
        self._draft.acls.writable()[Uuid(record.id)] = self.changed_acls[Uuid(record.id)] = record
        self.changed_security["acls"] = None

    def _replay_remove_acl(self, record: "messages.RemoveAccessControlEntryRecord") -> None:
        if self._draft.acls.writable().pop(Uuid(record.id), None) is None:
            raise ReplayError(f"no ACL has the id {record.id.hex()}")
        self.changed_acls[Uuid(record.id)] = None
        self.changed_security["acls"] = None

    def _replay_scram(self, record: "messages.UserScramCredentialRecord") -> None:
        key: ScramKey = (record.mechanism, record.name)
        self._draft.scram.writable()[key] = record
        self.changed_security["scram"] = None

    def _replay_remove_scram(self, record: "messages.RemoveUserScramCredentialRecord") -> None:
        if self._draft.scram.writable().pop((record.mechanism, record.name), None) is None:
            raise ReplayError(f"user {record.name} has no SCRAM credential of mechanism {record.mechanism}")
        self.changed_security["scram"] = None

    def _replay_token(self, record: "messages.DelegationTokenRecord") -> None:
        self._draft.delegation_tokens.writable()[record.token_id] = record
        self.changed_security["delegation_tokens"] = None

    def _replay_remove_token(self, record: "messages.RemoveDelegationTokenRecord") -> None:
        self._draft.delegation_tokens.writable().pop(record.token_id, None)
        self.changed_security["delegation_tokens"] = None

    def _replay_nothing(self, record: object) -> None:
        """No-ops, the marks of a transaction (`replay.Replayer` minds those) and what ZooKeeper left behind."""


def merged(before: PartitionImage, change: "messages.PartitionChangeRecord") -> PartitionImage:
    """The partition after a change. Naming a leader, even the same one, starts a new leader epoch."""
    replicas = before.replicas if change.replicas is None else tuple(change.replicas)
    directories = change.directories
    elr = change.eligible_leader_replicas
    leads_anew = change.leader != NO_LEADER_CHANGE
    recovery = change.leader_recovery_state
    return PartitionImage(
        replicas=replicas,
        directories=before.directories if directories is None else directories_of(directories, len(replicas)),
        isr=before.isr if change.isr is None else _shared(tuple(change.isr)),
        removing_replicas=(
            before.removing_replicas if change.removing_replicas is None else tuple(change.removing_replicas)
        ),
        adding_replicas=before.adding_replicas if change.adding_replicas is None else tuple(change.adding_replicas),
        elr=before.elr if elr is None else tuple(elr),
        last_known_elr=before.last_known_elr if change.last_known_elr is None else tuple(change.last_known_elr),
        leader=change.leader if leads_anew else before.leader,
        leader_recovery_state=before.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        leader_epoch=before.leader_epoch + 1 if leads_anew else before.leader_epoch,
        partition_epoch=before.partition_epoch + 1,
    )


def directories_of(ids: Iterable[bytes] | None, replicas: int) -> tuple[Uuid, ...]:
    """Records from before directories were assigned carry none: their replicas are MIGRATING, whose id is zero."""
    found: tuple[Uuid, ...] = tuple(ids or ())  # type: ignore[arg-type]  # ids on the wire are plain bytes
    if found and len(found) != replicas:
        raise ReplayError(f"{len(found)} directories are given for {replicas} replicas")
    return _shared_directories(found or (ZERO_UUID,) * replicas)


@lru_cache(maxsize=4096)
def _shared(values: tuple[int, ...]) -> tuple[int, ...]:
    """Thousands of partitions have the same few replica sets: they share one tuple of each."""
    return values


@lru_cache(maxsize=4096)
def _shared_directories(values: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
    return values


def _optional_dirs(ids: Iterable[bytes] | None) -> tuple[Uuid, ...] | None:
    return None if ids is None else tuple(Uuid(d) for d in ids)


def _endpoints(records: Iterable[object]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in records)  # type: ignore[attr-defined]


def _ranges(records: Iterable[object]) -> dict[str, VersionRange]:
    return {f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in records}  # type: ignore[attr-defined]


_HANDLERS: Final[Mapping[str, Callable[..., None]]] = {
    "RegisterBrokerRecord": MetadataDelta._replay_register_broker,
    "UnregisterBrokerRecord": MetadataDelta._replay_unregister_broker,
    "TopicRecord": MetadataDelta._replay_topic,
    "PartitionRecord": MetadataDelta._replay_partition,
    "ConfigRecord": MetadataDelta._replay_config,
    "PartitionChangeRecord": MetadataDelta._replay_partition_change,
    "FenceBrokerRecord": MetadataDelta._replay_fence_broker,
    "UnfenceBrokerRecord": MetadataDelta._replay_unfence_broker,
    "RemoveTopicRecord": MetadataDelta._replay_remove_topic,
    "DelegationTokenRecord": MetadataDelta._replay_token,
    "UserScramCredentialRecord": MetadataDelta._replay_scram,
    "FeatureLevelRecord": MetadataDelta._replay_feature_level,
    "ClientQuotaRecord": MetadataDelta._replay_client_quota,
    "ProducerIdsRecord": MetadataDelta._replay_producer_ids,
    "BrokerRegistrationChangeRecord": MetadataDelta._replay_registration_change,
    "AccessControlEntryRecord": MetadataDelta._replay_acl,
    "RemoveAccessControlEntryRecord": MetadataDelta._replay_remove_acl,
    "NoOpRecord": MetadataDelta._replay_nothing,
    "ZkMigrationStateRecord": MetadataDelta._replay_nothing,
    "RemoveUserScramCredentialRecord": MetadataDelta._replay_remove_scram,
    "BeginTransactionRecord": MetadataDelta._replay_nothing,
    "EndTransactionRecord": MetadataDelta._replay_nothing,
    "RemoveDelegationTokenRecord": MetadataDelta._replay_remove_token,
    "RegisterControllerRecord": MetadataDelta._replay_register_controller,
    "ClearElrRecord": MetadataDelta._replay_clear_elr,
}
"""By name, so that a node which never sees a record type never loads its codec. AbortTransactionRecord is left out on
purpose: a delta cannot forget, `replay.Replayer` can."""
