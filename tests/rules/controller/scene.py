"""A controller with brokers, and commands played on it as the runner would: decide, then replay."""

from collections.abc import Sequence

from ottla.controller.decision import Decision
from ottla.controller.machine import CommandContext, Controller
from ottla.metadata.features import DEFAULTS, SUPPORTED
from ottla.metadata.image import MetadataImage, PartitionImage
from ottla.metadata.replay import image_of
from ottla.model.errors import Errors
from ottla.model.ids import Millis, Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.protocol.codec import Message, MetadataRecord, Request, ResponseT_co

CLUSTER = "cluster-for-tests-aaaa"
EPOCH = 3

Topic = messages.CreateTopicsRequest.CreatableTopic
TopicConfig = messages.CreateTopicsRequest.CreatableTopicConfig
Assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment


def uuid(number: int) -> Uuid:
    return Uuid((1000 + number).to_bytes(16, "big"))


def features(**levels: int) -> list[Message]:
    """The levels of a new cluster; elr=0 and the like change one."""
    wanted = {**DEFAULTS, **{_FEATURE_NAMES[name]: level for name, level in levels.items()}}
    return [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in wanted.items()]


_FEATURE_NAMES = {"elr": "eligible.leader.replicas.version", "metadata": "metadata.version"}


class Scene:
    """The log grows by what is played; nothing is ever written anywhere."""

    def __init__(self, records: Sequence[Message] | None = None, **settings: str) -> None:
        self.settings = Settings.defaults("/data", **settings)
        first = image_of(features() if records is None else records, CLUSTER, offset=9, epoch=EPOCH, timestamp=1)
        self.controller = Controller(first, self.settings)
        self.now = Millis(0)
        self.ids = 0

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def decide(self, command: Request[ResponseT_co], fresh_ids: int = 0) -> Decision[ResponseT_co]:
        fresh = [uuid(self.ids + n) for n in range(fresh_ids)]
        self.ids += fresh_ids
        context = CommandContext(now=self.now, next_offset=self.image.offset + 1, fresh_ids=fresh)
        return self.controller.decide(command, context)

    def replay(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            self.controller.replay(records, base_offset=self.image.offset + 1, epoch=EPOCH, timestamp=2)

    def play(self, command: Request[ResponseT_co], fresh_ids: int = 0) -> Decision[ResponseT_co]:
        decision = self.decide(command, fresh_ids)
        self.replay(decision.records)
        return decision

    def create(self, *topics: "Topic", validate_only: bool = False) -> "messages.CreateTopicsResponse":
        request = messages.CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
        return self.play(request, len(topics)).reply

    def created(self, name: str, num_partitions: int = 1, replication_factor: int = 1) -> None:
        topic = Topic(name=name, num_partitions=num_partitions, replication_factor=replication_factor)
        assert [t.error_code for t in self.create(topic).topics] == [Errors.NONE]

    def error_of(self, topic: "Topic") -> Errors | int:
        (result,) = self.create(topic).topics
        return result.error_code

    def register(
        self, broker_id: int = 1, incarnation: int = 0, /, **fields: object
    ) -> "Decision[messages.BrokerRegistrationResponse]":
        return self.play(a_registration(broker_id, incarnation, **fields))

    def unfence(self, broker_id: int = 1) -> "Decision[messages.BrokerHeartbeatResponse]":
        return self.beat(broker_id)

    def beat(self, broker_id: int = 1, **fields: object) -> "Decision[messages.BrokerHeartbeatResponse]":
        epoch = self.image.brokers[broker_id].epoch
        request = messages.BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=self.image.offset
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.play(request)

    def epoch_of(self, broker_id: int) -> int:
        return self.image.brokers[broker_id].epoch

    def with_partition(self, *replicas: int, topic: str = "t", **configs: str) -> "Scene":
        """A topic with one partition on these brokers; config names are written with underscores."""
        self.create(
            Topic(
                name=topic,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[Assignment(partition_index=0, broker_ids=list(replicas))],
                configs=[TopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()],
            )
        )
        return self

    def partition(self, topic: str = "t", index: int = 0) -> PartitionImage:
        return self.image.topics[topic].partitions[index]

    def tick(self, now: int) -> Decision[None]:
        self.now = Millis(now)
        decision = self.controller.tick(self.now)
        self.replay(decision.records)
        return decision

    def fence(self, *brokers: int) -> None:
        for broker_id in brokers:
            self.beat(broker_id, want_fence=True)

    def has_isr(self, *isr: int, topic: str = "t", index: int = 0) -> None:
        """The log says so, whatever the rules think of it."""
        topic_id = self.image.topics[topic].id
        self.replay([messages.PartitionChangeRecord(partition_id=index, topic_id=topic_id, isr=list(isr))])

    def with_brokers(self, *ids: int, **fields: object) -> "Scene":
        for broker_id in ids:
            self.play(a_registration(broker_id, 0, **fields))
            self.unfence(broker_id)
        return self


def a_registration(
    broker_id: int = 1, incarnation: int = 0, /, **fields: object
) -> "messages.BrokerRegistrationRequest":
    kind = messages.BrokerRegistrationRequest
    request = kind(
        broker_id=broker_id,
        cluster_id=CLUSTER,
        incarnation_id=uuid(500 + 10 * broker_id + incarnation),
        listeners=[kind.Listener(name="PLAINTEXT", host="127.0.0.1", port=9092, security_protocol=0)],
        features=[
            kind.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
        log_dirs=[uuid(900 + broker_id)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request
