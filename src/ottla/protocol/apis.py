"""One row per API: the versions spoken, the listeners it is served on, what it needs, and who decides it.

The codecs' facts (names, versions) come from Kafka's schemas, what ottla does with an API stands in `_SERVED`. All who
treat APIs differently read it here: the broker's dispatch and sessions, the controller, forwarding, the page
docs/PROTOCOL.md. What belongs to a row is found by its name: `CreateTopics` is handled by
`broker/handlers/k19_create_topics.py` and decided by `Controller.create_topics`. Only the shape that a refusal takes is
no matter of rows: it follows from the response, or stands in `refusals`.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ottla.model.permissions import (
    ALTER_CLUSTER,
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_ACTION,
    CREATE_CLUSTER,
    CREATE_TOKENS,
    CREATE_TOPIC,
    DELETE_CLUSTER,
    DELETE_GROUP,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE,
    READ_GROUP,
    READ_TOPIC,
    TWO_PHASE_COMMIT,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    Permission,
)
from ottla.protocol._generated import tables


class ListenerType(Enum):
    BROKER = "broker"
    CONTROLLER = "controller"


class Decider(Enum):
    """Who else than the node that was asked knows the answer."""

    CONTROLLER = "controller"
    """The active controller, by records of the metadata log."""
    QUORUM = "quorum"
    """The members of the metadata log's quorum."""


class OfCluster(NamedTuple):
    """Any one of these permissions on the cluster: the session asks, before the handler is called."""

    any_of: tuple[Permission, ...]


class Asks(NamedTuple):
    """The handler asks, for each name in the request: it refuses parts of it, or leaves out what one may not see."""

    permissions: tuple[Permission, ...]


Needs: TypeAlias = OfCluster | Asks | None
"""None: nothing, as whoever got this far must be able to learn where he is."""


class Instead(NamedTuple):
    """What is different where an API is served by a controller."""

    needs: Needs
    handler: str = ""


class Served(NamedTuple):
    on: tuple[ListenerType, ...]
    needs: Needs
    decider: Decider | None = None
    forwarded: bool = False
    """A broker passes it on for a client; a controller takes it out of an Envelope (KIP-590)."""
    on_controllers: Instead | None = None
    highest: int | None = None
    """If not the highest version that the schemas have."""


class Api(NamedTuple):
    key: int
    name: str
    min_version: int
    max_version: int
    """What the schemas have; see `stable_max` for what may be advertised."""
    first_flexible: int | None
    listeners: tuple[str, ...]
    """Kafka's: broker, controller or both."""
    latest_unstable: bool
    served: Served | None = None
    """None: not here."""

    @property
    def stable_max(self) -> int:
        return self.max_version - self.latest_unstable

    @property
    def request(self) -> str:
        return self.name + "Request"

    @property
    def response(self) -> str:
        return self.name + "Response"

    @property
    def function(self) -> str:
        """Its name as functions and files have it."""
        return tables.MODULES[self.request].removesuffix("_request")

    def is_flexible(self, version: int) -> bool:
        return self.first_flexible is not None and version >= self.first_flexible


class Entrance(NamedTuple):
    """An API as one kind of listener serves it."""

    api: Api
    max_version: int
    needs: Needs
    handler: str
    """The module in broker.handlers."""


_BROKERS: Final = (ListenerType.BROKER,)
_CONTROLLERS: Final = (ListenerType.CONTROLLER,)
_BOTH: Final = (ListenerType.BROKER, ListenerType.CONTROLLER)


def _of_cluster(*any_of: Permission) -> OfCluster:
    return OfCluster(any_of)


def _asks(*permissions: Permission) -> Asks:
    return Asks(permissions)


def _broker(needs: Needs) -> Served:
    return Served(_BROKERS, needs)


def _decided(needs: Needs, decider: Decider = Decider.CONTROLLER) -> Served:
    """What a client asks of any broker, or of a controller."""
    return Served(_BOTH, needs, decider, forwarded=True)


def _own_words(decider: Decider) -> Served:
    """What nodes say to a controller for themselves."""
    return Served(_CONTROLLERS, _of_cluster(CLUSTER_ACTION), decider)


_SERVED: Final = {
    (0, "Produce"): _broker(_asks(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID)),
    (1, "Fetch"): Served(
        _BOTH,
        _asks(READ_TOPIC, CLUSTER_ACTION),
        on_controllers=Instead(_of_cluster(CLUSTER_ACTION), "k01_fetch_of_quorum"),
    ),
    (2, "ListOffsets"): _broker(_asks(DESCRIBE_TOPIC)),
    (3, "Metadata"): _broker(_asks(DESCRIBE_TOPIC, CREATE_TOPIC, CREATE_CLUSTER)),
    (8, "OffsetCommit"): _broker(_asks(READ_GROUP, READ_TOPIC)),
    (9, "OffsetFetch"): _broker(_asks(DESCRIBE_GROUP, DESCRIBE_TOPIC)),
    (10, "FindCoordinator"): _broker(_asks(DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID)),
    (11, "JoinGroup"): _broker(_asks(READ_GROUP)),
    (12, "Heartbeat"): _broker(_asks(READ_GROUP)),
    (13, "LeaveGroup"): _broker(_asks(READ_GROUP)),
    (14, "SyncGroup"): _broker(_asks(READ_GROUP)),
    (15, "DescribeGroups"): _broker(_asks(DESCRIBE_GROUP)),
    (16, "ListGroups"): _broker(_asks(DESCRIBE_CLUSTER, DESCRIBE_GROUP)),
    (17, "SaslHandshake"): Served(_BOTH, None),
    # As a 4.3 broker: the codecs of version 5 (4.4, KIP-1242) are there for clients of ours.
    (18, "ApiVersions"): Served(_BOTH, None, highest=4),
    (19, "CreateTopics"): _decided(_asks(CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS)),
    (20, "DeleteTopics"): _decided(_asks(DELETE_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC)),
    (21, "DeleteRecords"): _broker(_asks(DELETE_TOPIC)),
    (22, "InitProducerId"): _broker(_asks(WRITE_TRANSACTIONAL_ID, TWO_PHASE_COMMIT, IDEMPOTENT_WRITE, WRITE_TOPIC)),
    (23, "OffsetForLeaderEpoch"): _broker(_asks(CLUSTER_ACTION, DESCRIBE_TOPIC)),
    (24, "AddPartitionsToTxn"): _broker(_asks(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC, CLUSTER_ACTION)),
    (25, "AddOffsetsToTxn"): _broker(_asks(WRITE_TRANSACTIONAL_ID, READ_GROUP)),
    (26, "EndTxn"): _broker(_asks(WRITE_TRANSACTIONAL_ID)),
    (27, "WriteTxnMarkers"): _broker(_of_cluster(ALTER_CLUSTER, CLUSTER_ACTION)),
    (28, "TxnOffsetCommit"): _broker(_asks(WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC)),
    (29, "DescribeAcls"): Served(_BOTH, _of_cluster(DESCRIBE_CLUSTER)),
    (30, "CreateAcls"): _decided(_of_cluster(ALTER_CLUSTER)),
    (31, "DeleteAcls"): _decided(_of_cluster(ALTER_CLUSTER)),
    (32, "DescribeConfigs"): _broker(_asks(DESCRIBE_TOPIC_CONFIGS, DESCRIBE_GROUP_CONFIGS, DESCRIBE_CLUSTER_CONFIGS)),
    (33, "AlterConfigs"): _decided(_asks(ALTER_TOPIC_CONFIGS, ALTER_GROUP_CONFIGS, ALTER_CLUSTER_CONFIGS)),
    (34, "AlterReplicaLogDirs"): _broker(_of_cluster(ALTER_CLUSTER)),
    (35, "DescribeLogDirs"): _broker(_of_cluster(DESCRIBE_CLUSTER)),
    (36, "SaslAuthenticate"): Served(_BOTH, None),
    (37, "CreatePartitions"): _decided(_asks(ALTER_TOPIC)),
    (38, "CreateDelegationToken"): _decided(_asks(CREATE_TOKENS)),
    (39, "RenewDelegationToken"): _decided(None),
    (40, "ExpireDelegationToken"): _decided(None),
    (41, "DescribeDelegationToken"): _broker(_asks(DESCRIBE_TOKEN, DESCRIBE_TOKENS)),
    (42, "DeleteGroups"): _broker(_asks(DELETE_GROUP)),
    (43, "ElectLeaders"): _decided(_of_cluster(ALTER_CLUSTER)),
    (44, "IncrementalAlterConfigs"): _decided(
        _asks(ALTER_TOPIC_CONFIGS, ALTER_GROUP_CONFIGS, ALTER_CLUSTER_CONFIGS, CLUSTER_ACTION)
    ),
    (45, "AlterPartitionReassignments"): _decided(_of_cluster(ALTER_CLUSTER)),
    (46, "ListPartitionReassignments"): _decided(_of_cluster(DESCRIBE_CLUSTER)),
    (47, "OffsetDelete"): _broker(_asks(DELETE_GROUP, READ_TOPIC)),
    (48, "DescribeClientQuotas"): _broker(_of_cluster(DESCRIBE_CLUSTER_CONFIGS)),
    (49, "AlterClientQuotas"): _decided(_of_cluster(ALTER_CLUSTER_CONFIGS)),
    (50, "DescribeUserScramCredentials"): _broker(_of_cluster(DESCRIBE_CLUSTER)),
    (51, "AlterUserScramCredentials"): _decided(_of_cluster(ALTER_CLUSTER)),
    (52, "Vote"): _own_words(Decider.QUORUM),
    (53, "BeginQuorumEpoch"): _own_words(Decider.QUORUM),
    (54, "EndQuorumEpoch"): _own_words(Decider.QUORUM),
    (55, "DescribeQuorum"): _decided(_of_cluster(DESCRIBE_CLUSTER), Decider.QUORUM),
    (56, "AlterPartition"): _own_words(Decider.CONTROLLER),
    (57, "UpdateFeatures"): _decided(_of_cluster(ALTER_CLUSTER)),
    (58, "Envelope"): Served(_CONTROLLERS, _of_cluster(CLUSTER_ACTION)),
    (59, "FetchSnapshot"): _own_words(Decider.QUORUM),
    (60, "DescribeCluster"): Served(_BOTH, None, on_controllers=Instead(_of_cluster(ALTER_CLUSTER))),
    (61, "DescribeProducers"): _broker(_asks(READ_TOPIC)),
    (62, "BrokerRegistration"): _own_words(Decider.CONTROLLER),
    (63, "BrokerHeartbeat"): _own_words(Decider.CONTROLLER),
    (64, "UnregisterBroker"): _decided(_of_cluster(ALTER_CLUSTER)),
    (65, "DescribeTransactions"): _broker(_asks(DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC)),
    (66, "ListTransactions"): _broker(_asks(DESCRIBE_TRANSACTIONAL_ID)),
    (67, "AllocateProducerIds"): _own_words(Decider.CONTROLLER),
    (68, "ConsumerGroupHeartbeat"): _broker(_asks(READ_GROUP, DESCRIBE_TOPIC)),
    (69, "ConsumerGroupDescribe"): _broker(_asks(DESCRIBE_GROUP, DESCRIBE_TOPIC)),
    (70, "ControllerRegistration"): _own_words(Decider.CONTROLLER),
    (73, "AssignReplicasToDirs"): _own_words(Decider.CONTROLLER),
    (74, "ListConfigResources"): _broker(_of_cluster(DESCRIBE_CLUSTER_CONFIGS)),
    (75, "DescribeTopicPartitions"): _broker(_asks(DESCRIBE_TOPIC)),
    (80, "AddRaftVoter"): _decided(_of_cluster(ALTER_CLUSTER), Decider.QUORUM),
    (81, "RemoveRaftVoter"): _decided(_of_cluster(ALTER_CLUSTER), Decider.QUORUM),
    (82, "UpdateRaftVoter"): _own_words(Decider.QUORUM),
}

API: Final = {row[0]: Api(*row, _SERVED.get((row[0], row[1]))) for row in tables.APIS}
"""Every key that Kafka has; 4 to 7, of the ZooKeeper time, are gone."""
assert sum(api.served is not None for api in API.values()) == len(_SERVED), "a row with another number or name"


def entrances(listener: ListenerType) -> Iterator[Entrance]:
    """What a listener of that kind serves, by key."""
    for api in API.values():
        served = api.served
        if served is None or listener not in served.on:
            continue
        instead = served.on_controllers if listener is ListenerType.CONTROLLER else None
        yield Entrance(
            api,
            api.stable_max if served.highest is None else served.highest,
            served.needs if instead is None else instead.needs,
            (instead.handler if instead is not None else "") or f"k{api.key:02}_{api.function}",
        )


def decided_by(decider: Decider) -> Iterator[Api]:
    return (api for api in API.values() if api.served is not None and api.served.decider is decider)
