"""A shard of groups, played on as the runner would: decide, replay, perform. Its log is a list."""

from collections.abc import Mapping
from typing import Any, TypeVar

from ottla.broker.handlers.k08_offset_commit import asked_in_full
from ottla.coordinator.group.caller import Caller
from ottla.coordinator.group.classic import consumer_protocol as blobs
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.group.state import GroupSettings
from ottla.coordinator.records import CoordinatorRecord, Decoder, encode_key, encode_value
from ottla.coordinator.shard import Decision, Now, Parked, Respond, Run
from ottla.metadata.image import MetadataImage, PartitionImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis, Uuid
from ottla.protocol import messages

T = TypeVar("T")

START = 1_000_000
WAITING = "waiting"
"""What a parked request answers while it waits."""

Heartbeat = messages.ConsumerGroupHeartbeatRequest


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"\0")[:16])


def image_of(topics: Mapping[str, int], offset: int = 1) -> MetadataImage:
    """Topics with their number of partitions."""
    placed = PartitionImage((1,), (Uuid(bytes(16)),), (1,), (), (), (), (), 1, 0, 0, 0)
    images = {
        name: TopicImage(name, topic_id(name), dict.fromkeys(range(partitions), placed))
        for name, partitions in topics.items()
    }
    return MetadataImage(offset=offset, topics=images, topics_by_id={topic.id: topic for topic in images.values()})


class Refused(Exception):
    """The log did not take the records of a decision."""


class Scene:
    def __init__(self, topics: Mapping[str, int] | None = None, **settings: Any) -> None:
        self.now = START
        self.settings = GroupSettings(**{"initial_rebalance_delay": Millis(0), **settings})
        self.image = image_of(topics or {"orders": 4})
        self.log: list[tuple[CoordinatorRecord, int]] = []
        """Records with the producer id of their transaction, or the end of one as (producer, committed)."""
        self.answers: dict[int, Any] = {}
        self.runs: list[Run] = []
        self.ids = 0
        self.refuses = False
        self.shard = GroupShard(self.settings, self.new_id)
        self.take(self.shard.loaded(self.image, self.time))

    def new_id(self) -> str:
        self.ids += 1
        return f"id{self.ids}"

    @property
    def time(self) -> Now:
        return Now(Millis(self.now), Millis(self.now))

    # ---- playing

    def take(self, decision: Decision[T], producer_id: int = -1) -> Any:
        if self.refuses and decision.records:
            self.shard.undo.run()
            raise Refused
        self.shard.undo.clear()
        for record in decision.records:
            self.shard.replay(record, len(self.log), producer_id)
            written = [record] if isinstance(record, CoordinatorRecord) else record.records()
            self.log += [(each, producer_id) for each in written]
        for effect in decision.effects:
            if isinstance(effect, Respond):
                assert effect.token not in self.answers, "a request is answered once"
                self.answers[effect.token] = effect.response
            else:
                assert isinstance(effect, Run)
                self.runs.append(effect)
        if isinstance(decision.reply, Parked):
            return self.answers.get(decision.reply.token, Waiting(self.answers, decision.reply.token))
        return decision.reply

    def run_threads(self) -> None:
        while self.runs:
            run = self.runs.pop(0)
            self.take(run.then(run.work(), self.time))

    def pass_time(self, millis: int) -> None:
        """Every deadline is met at its own time."""
        end = self.now + millis
        while (at := self.shard.next_tick()) is not None and at <= end:
            self.now = max(self.now, at)
            self.take(self.shard.tick(self.time))
        self.now = end

    def topics_become(self, topics: Mapping[str, int]) -> None:
        self.image = image_of(topics, self.image.offset + 1)
        self.take(self.shard.on_metadata(self.image, self.time))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.shard.complete_transaction(producer_id, 0, committed)
        self.log.append((CoordinatorRecord(messages.GroupMetadataKey(""), None, int(committed)), -2 - producer_id))

    def restart(self) -> "Scene":
        """Another broker takes over: only the log, through the bytes it is made of, is left."""
        decoder = Decoder(messages.GROUP_RECORDS)
        self.shard = GroupShard(self.settings, self.new_id)
        self.answers = {}
        for offset, (record, producer_id) in enumerate(self.log):
            if producer_id <= -2:
                self.shard.complete_transaction(-2 - producer_id, 0, bool(record.version))
                continue
            value = None if record.value is None else encode_value(record.value, record.version)
            decoded = decoder.decode(encode_key(record.key), value)
            assert decoded is not None
            self.shard.replay(decoded, offset, producer_id)
        self.take(self.shard.loaded(self.image, self.time))
        return self

    # ---- the classic protocol

    def join(
        self,
        group: str = "g",
        member: str = "",
        *,
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        version: int = 9,
        session: int = 10_000,
        rebalance: int = 60_000,
        topics: tuple[str, ...] = ("orders",),
    ) -> Any:
        chosen = {"range": subscription(*topics)} if protocols is None else protocols
        request = messages.JoinGroupRequest(
            group_id=group,
            member_id=member,
            group_instance_id=instance,
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance,
            protocol_type=protocol_type,
            protocols=[
                messages.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in chosen.items()
            ],
        )
        return self.take(self.shard.join(request, Caller("client", "/host", version), self.time))

    def join_known(self, group: str = "g", **options: Any) -> tuple[str, Any]:
        """Both steps of a new member's join: its id, and the answer."""
        first = self.join(group, **options)
        assert first.error_code == Errors.MEMBER_ID_REQUIRED
        return first.member_id, self.join(group, first.member_id, **options)

    def sync(
        self,
        member: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        **names: str,
    ) -> Any:
        request = messages.SyncGroupRequest(
            group_id=group,
            member_id=member,
            generation_id=generation,
            group_instance_id=instance,
            assignments=[
                messages.SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=given)
                for each, given in (assignments or {}).items()
            ],
            **names,
        )
        return self.take(self.shard.sync(request, self.time))

    def beat(self, member: str, generation: int, *, group: str = "g", instance: str | None = None) -> Errors:
        request = messages.HeartbeatRequest(
            group_id=group, member_id=member, generation_id=generation, group_instance_id=instance
        )
        return Errors(self.take(self.shard.heartbeat(request, self.time)).error_code)

    def leave(self, *members: str | tuple[str, str], group: str = "g") -> list[Errors]:
        identity = messages.LeaveGroupRequest.MemberIdentity
        request = messages.LeaveGroupRequest(
            group_id=group,
            members=[
                identity(member_id=member)
                if isinstance(member, str)
                else identity(member_id=member[0], group_instance_id=member[1])
                for member in members
            ],
        )
        response = self.take(self.shard.leave(request, self.time))
        return [Errors(member.error_code) for member in response.members]

    def stable_group(self, members: int = 1, group: str = "g", **options: Any) -> list[str]:
        """Members of generation 1, the first leads; each has its index as assignment."""
        ids = [self.join(group, **options).member_id for _ in range(members)]
        joins = [self.join(group, member, **options) for member in ids]
        self.pass_time(0)
        generation = told(joins[0]).generation_id
        given = {member: bytes([index]) for index, member in enumerate(ids)}
        syncs = [self.sync(member, generation, group=group) for member in ids[1:]]
        assert self.sync(ids[0], generation, given, group=group).error_code == 0
        assert all(told(sync).error_code == 0 for sync in syncs)
        return ids

    # ---- the consumer protocol

    def heartbeat(self, member: str = "m1", epoch: int = 0, *, group: str = "g", **fields: Any) -> Any:
        if epoch == 0:
            fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], "owned": {}, **fields}
        owned = fields.pop("owned", None)
        version = fields.pop("version", 1)
        request = Heartbeat(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topic_partitions=None
            if owned is None
            else [
                Heartbeat.TopicPartitions(topic_id=topic_id(topic), partitions=list(partitions))
                for topic, partitions in owned.items()
            ],
            **fields,
        )
        return self.take(self.shard.consumer_heartbeat(request, Caller("client", "/host", version), self.time))

    # ---- offsets

    def commit(
        self,
        offset: int,
        *,
        group: str = "g",
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        topic: str = "orders",
        partition: int = 0,
        metadata: str = "",
        version: int = 9,
        retention: int = -1,
    ) -> Errors:
        kind = messages.OffsetCommitRequest
        request = kind(
            group_id=group,
            member_id=member,
            generation_id_or_member_epoch=generation,
            group_instance_id=instance,
            retention_time_ms=retention,
            topics=[
                kind.OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id(topic),
                    partitions=[
                        kind.OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata=metadata
                        )
                    ],
                )
            ],
        )
        reply = self.take(self.shard.commit_offsets(asked_in_full(request), version, self.time))
        return Errors.OFFSET_METADATA_TOO_LARGE if reply.too_large else reply.error

    def txn_commit(
        self,
        offset: int,
        producer_id: int,
        *,
        group: str = "g",
        member: str = "",
        generation: int = -1,
        partition: int = 0,
    ) -> Errors:
        kind = messages.TxnOffsetCommitRequest
        request = kind(
            group_id=group,
            member_id=member,
            generation_id=generation,
            producer_id=producer_id,
            topics=[
                kind.TxnOffsetCommitRequestTopic(
                    name="orders",
                    partitions=[
                        kind.TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                    ],
                )
            ],
        )
        response = self.take(self.shard.txn_offset_commit(request, 5, self.time), producer_id)
        return Errors(response.topics[0].partitions[0].error_code)

    def committed(
        self, *, group: str = "g", topic: str = "orders", partition: int = 0, stable: bool = False, **who: Any
    ) -> int | Errors:
        kind = messages.OffsetFetchRequest
        asked = kind.OffsetFetchRequestGroup(
            group_id=group,
            topics=[kind.OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])],
            **who,
        )
        found = self.take(self.shard.fetch_offsets(asked, stable))
        if found.error_code:
            return Errors(found.error_code)
        (only,) = found.topics[0].partitions
        return Errors(only.error_code) if only.error_code else int(only.committed_offset)

    # ---- looking

    def groups(self) -> dict[str, tuple[str, str]]:
        return {group.group_id: (group.group_type, group.group_state) for group in self.shard.list_groups([], [])}


class Waiting:
    """The answer to a parked request, once it is there."""

    def __init__(self, answers: Mapping[int, Any], token: int) -> None:
        self._answers = answers
        self._token = token

    @property
    def answer(self) -> Any:
        return self._answers.get(self._token)


def told(reply: Any) -> Any:
    """What a request was told, be it at once or by now."""
    return reply.answer if isinstance(reply, Waiting) else reply


def subscription(*topics: str, owned: Mapping[str, list[int]] | None = None) -> bytes:
    kind = messages.ConsumerProtocolSubscription
    message = kind(
        topics=list(topics),
        owned_partitions=[
            kind.TopicPartition(topic=topic, partitions=partitions) for topic, partitions in (owned or {}).items()
        ],
    )
    return b"\0\1" + message.encode(1)


def assigned(response: Any) -> dict[str, list[int]] | None:
    """By topic name, of a heartbeat's answer; None if it says nothing about the assignment."""
    if response.assignment is None:
        return None
    return {
        topic.topic_id.rstrip(b"\0").decode(): sorted(topic.partitions)
        for topic in response.assignment.topic_partitions
    }


def given(response: Any) -> dict[str, list[int]]:
    """By topic name, of a classic sync's answer."""
    return {topic: sorted(partitions) for topic, partitions in blobs.assignment(response.assignment).items()}
