"""Random but lawful lives of a cluster: records of every type, each fitting what came before."""

from hypothesis import strategies as st

from ottla.protocol import messages
from ottla.protocol.codec import Message

NAMES = ("orders", "payments", "a.b", "__consumer_offsets")


def uuid(number: int) -> bytes:
    return (1000 + number).to_bytes(16, "big")


class Life:
    """Draws one record after the other and remembers what the next may refer to."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._topics: dict[bytes, int] = {}
        self._names: dict[bytes, str] = {}
        self._brokers: dict[int, int] = {}
        self._acls: list[bytes] = []
        self._scram: list[tuple[str, int]] = []
        self._count = 0
        self._producer_id = 0

    def records(self, length: int) -> list[Message]:
        first: Message = messages.FeatureLevelRecord(name="metadata.version", feature_level=30)
        return [first, *(self._next() for _ in range(length))]

    def _next(self) -> Message:
        self._count += 1
        kinds = [self._topic, self._broker, self._config, self._feature, self._other, self._security]
        if self._topics:
            kinds += [self._partition, self._partition, self._partition_change, self._remove_topic, self._clear_elr]
        if self._brokers:
            kinds += [self._broker_change, self._broker_change]
        return self._draw(st.sampled_from(kinds))()

    def _ids(self, least: int = 1) -> list[int]:
        return self._draw(st.lists(st.integers(1, 5), unique=True, min_size=least, max_size=3))

    def _topic(self) -> Message:
        taken = self._names.values()
        name = next((n for n in NAMES if n not in taken), f"topic-{self._count}")
        topic_id = uuid(self._count)
        self._topics[topic_id] = 0
        self._names[topic_id] = name
        return messages.TopicRecord(name=name, topic_id=topic_id)

    def _a_topic(self) -> bytes:
        return self._draw(st.sampled_from(list(self._topics)))

    def _partition(self) -> Message:
        topic_id = self._a_topic()
        replicas = self._ids()
        record = messages.PartitionRecord(
            partition_id=self._topics[topic_id],
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas[:1],
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[uuid(90 + r) for r in replicas],
            eligible_leader_replicas=replicas[1:] or None,
        )
        self._topics[topic_id] += 1
        return record

    def _partition_change(self) -> Message:
        topic_id = self._a_topic()
        if not self._topics[topic_id]:
            return self._partition()
        draw = self._draw
        return messages.PartitionChangeRecord(
            partition_id=draw(st.integers(0, self._topics[topic_id] - 1)),
            topic_id=topic_id,
            isr=draw(st.none() | st.just([]) | st.just([1, 2])),
            leader=draw(st.sampled_from([-2, -1, 1, 2])),
            leader_recovery_state=draw(st.sampled_from([-1, 0, 1])),
            adding_replicas=draw(st.none() | st.just([4])),
            removing_replicas=draw(st.none() | st.just([])),
            eligible_leader_replicas=draw(st.none() | st.just([3])),
            last_known_elr=draw(st.none() | st.just([]) | st.just([3])),
        )

    def _remove_topic(self) -> Message:
        topic_id = self._a_topic()
        del self._topics[topic_id], self._names[topic_id]
        return messages.RemoveTopicRecord(topic_id=topic_id)

    def _clear_elr(self) -> Message:
        name = self._draw(st.sampled_from(["", *self._names.values()]))
        return messages.ClearElrRecord(topic_name=name)

    def _broker(self) -> Message:
        broker_id = self._draw(st.integers(1, 3))
        self._brokers[broker_id] = self._count
        kind = messages.RegisterBrokerRecord
        return kind(
            broker_id=broker_id,
            incarnation_id=uuid(self._count),
            broker_epoch=self._count,
            end_points=[kind.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0)],
            features=[kind.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
            rack=self._draw(st.none() | st.just("r1")),
            log_dirs=[uuid(90 + broker_id)],
        )

    def _broker_change(self) -> Message:
        broker_id = self._draw(st.sampled_from(list(self._brokers)))
        epoch = self._brokers[broker_id]
        kind = messages.BrokerRegistrationChangeRecord
        choice = self._draw(st.integers(0, 6))
        if choice == 0:
            del self._brokers[broker_id]
            return messages.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)
        if choice == 1:
            return messages.FenceBrokerRecord(id=broker_id, epoch=epoch)
        if choice == 2:
            return messages.UnfenceBrokerRecord(id=broker_id, epoch=epoch)
        if choice == 3:
            return kind(broker_id=broker_id, broker_epoch=epoch, fenced=-1)
        if choice == 4:
            return kind(broker_id=broker_id, broker_epoch=epoch, in_controlled_shutdown=1)
        if choice == 5:
            return kind(broker_id=broker_id, broker_epoch=epoch, log_dirs=[uuid(77)])
        return kind(broker_id=broker_id, broker_epoch=epoch, cordoned_log_dirs=[])

    def _config(self) -> Message:
        resource = self._draw(st.sampled_from([(4, ""), (4, "1"), (32, "group"), (16, "metrics")]))
        return messages.ConfigRecord(
            resource_type=resource[0],
            resource_name=resource[1],
            name=self._draw(st.sampled_from(["a", "b"])),
            value=self._draw(st.none() | st.just("1") | st.just("")),
        )

    def _feature(self) -> Message:
        name = self._draw(st.sampled_from(["group.version", "transaction.version", "kraft.version"]))
        return messages.FeatureLevelRecord(name=name, feature_level=self._draw(st.integers(0, 1)))

    def _other(self) -> Message:
        choice = self._draw(st.integers(0, 3))
        if choice == 0:
            self._producer_id += 1000
            return messages.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=self._producer_id)
        if choice == 1:
            kind = messages.RegisterControllerRecord
            endpoint = kind.ControllerEndpoint(name="CONTROLLER", host="h", port=9093, security_protocol=0)
            return kind(controller_id=1, incarnation_id=uuid(self._count), end_points=[endpoint])
        if choice == 2:
            return messages.ZkMigrationStateRecord(zk_migration_state=0)
        return messages.NoOpRecord()

    def _security(self) -> Message:
        choice = self._draw(st.integers(0, 6))
        if choice == 0:
            kind = messages.ClientQuotaRecord
            entity = [kind.EntityData(entity_type="user", entity_name=self._draw(st.none() | st.just("u")))]
            return kind(entity=entity, key="producer_byte_rate", value=1.5, remove=self._draw(st.booleans()))
        if choice == 1:
            self._acls.append(uuid(self._count))
            return messages.AccessControlEntryRecord(id=uuid(self._count), resource_type=2, resource_name="t")
        if choice == 2 and self._acls:
            return messages.RemoveAccessControlEntryRecord(id=self._acls.pop())
        if choice == 3:
            self._scram.append((f"user{self._count}", 1))
            return messages.UserScramCredentialRecord(
                name=f"user{self._count}", mechanism=1, salt=b"s", iterations=4096
            )
        if choice == 4 and self._scram:
            name, mechanism = self._scram.pop()
            return messages.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
        if choice == 5:
            return messages.RemoveDelegationTokenRecord(token_id="gone")
        return messages.DelegationTokenRecord(owner="User:a", requester="User:a", token_id=f"token{self._count}")


@st.composite
def lives(draw: st.DrawFn, max_length: int = 40) -> list[Message]:
    return Life(draw).records(draw(st.integers(0, max_length)))
