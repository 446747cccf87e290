"""The frozen facts of a cluster at one offset of the metadata log.

Every mapping in an image is shared with the images before and after it and is never written to once the image is built:
`delta` copies a mapping before the first change. Readers may keep an image for as long as they like.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.model.ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Uuid
from ottla.protocol import messages

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"

RECOVERED: Final = 0
RECOVERING: Final = 1
"""Leader recovery states: RECOVERING follows an unclean election until the leader says it is done (KIP-704)."""

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32

ConfigKey = tuple[int, str]
"""Resource type and name; the empty broker name holds the cluster-wide defaults."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, sorted by type; a name of None is the default entity of its type."""

ScramKey = tuple[int, str]
"""Mechanism and user."""

_NONE: Final[Mapping[Any, Any]] = {}


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    min: int
    max: int


class BrokerRegistration(NamedTuple):
    id: int
    epoch: int
    incarnation_id: Uuid
    listeners: tuple[Endpoint, ...]
    features: Mapping[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[Uuid, ...]
    cordoned_log_dirs: tuple[Uuid, ...] | None
    """None until the broker has said which of its directories take no new replicas (KIP-1066)."""
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Active brokers may lead: neither fenced nor on their way out."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_directory(self, directory: Uuid) -> bool:
        """Whether a replica that the log places into `directory` can be served there."""
        if directory in self.log_dirs or directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        # KAFKA-16162: registrations from before KIP-858 name no directories at all.
        return not self.log_dirs and directory != LOST_DIRECTORY

    def listener(self, name: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.listeners if endpoint.name == name), None)


class ControllerRegistration(NamedTuple):
    id: int
    incarnation_id: Uuid
    listeners: tuple[Endpoint, ...]
    features: Mapping[str, VersionRange]
    zk_migration_ready: bool = False


def effective_min_isr(min_insync_replicas: int, replicas: int) -> int:
    """min.insync.replicas counts at most the replicas there are: for who leads, and for who elects (KIP-966)."""
    return min(min_insync_replicas, replicas)


class PartitionImage(NamedTuple):
    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    """One directory id for each replica, in the same order."""
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int

    def directory(self, replica: int) -> Uuid:
        return self.directories[self.replicas.index(replica)]


class TopicImage(NamedTuple):
    name: str
    id: Uuid
    partitions: Mapping[int, PartitionImage]


class MetadataImage(NamedTuple):
    offset: int = -1
    """The last offset this image contains; -1 for the empty image."""
    epoch: int = -1
    timestamp: int = -1
    """Append time of the last batch this image contains."""
    cluster_id: str = ""
    features: Mapping[str, int] = _NONE
    """Finalized levels above 0, metadata.version included; kraft.version belongs to the quorum, not to the image."""
    brokers: Mapping[int, BrokerRegistration] = _NONE
    controllers: Mapping[int, ControllerRegistration] = _NONE
    topics: Mapping[str, TopicImage] = _NONE
    topics_by_id: Mapping[Uuid, TopicImage] = _NONE
    configs: Mapping[ConfigKey, Mapping[str, str]] = _NONE
    next_producer_id: int = -1
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = _NONE
    acls: Mapping[Uuid, "messages.AccessControlEntryRecord"] = _NONE
    scram: Mapping[ScramKey, "messages.UserScramCredentialRecord"] = _NONE
    delegation_tokens: Mapping[str, "messages.DelegationTokenRecord"] = _NONE

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, 0)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self.configs.get((TOPIC_RESOURCE, name), _NOTHING)

    def broker_configs(self, broker_id: int) -> Mapping[str, str]:
        return self.configs.get((BROKER_RESOURCE, str(broker_id)), _NOTHING)

    @property
    def cluster_configs(self) -> Mapping[str, str]:
        return self.configs.get((BROKER_RESOURCE, ""), _NOTHING)


_NOTHING: Final[Mapping[str, str]] = {}
EMPTY: Final = MetadataImage()


def offline_replicas(image: MetadataImage, partition: PartitionImage) -> list[int]:
    """Those whose broker or log directory is not there."""
    brokers = image.brokers
    return [
        replica
        for replica in partition.replicas
        if (broker := brokers.get(replica)) is None
        or broker.fenced
        or not broker.has_directory(partition.directory(replica))
    ]
