"""Committing, fetching and deleting offsets: who may, and what is written."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.coordinator.group.commits import NO_EXPIRY, NO_METADATA, VALUE_VERSION, Commits, CommitTopic, Metadata
from ottla.coordinator.group.committed import ByTopic, Committed, Spot
from ottla.coordinator.group.draft import GroupError
from ottla.coordinator.group.kind import Group
from ottla.coordinator.group.state import GroupState
from ottla.coordinator.records import CoordinatorRecord, tombstone
from ottla.coordinator.shard import Decision, Now
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID
from ottla.protocol.messages import (
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

NO_RETENTION_TIME: Final = -1
NO_OFFSET: Final = -1

FetchGroup: TypeAlias = OffsetFetchRequest.OffsetFetchRequestGroup
FetchedGroup: TypeAlias = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopic: TypeAlias = OffsetFetchResponse.OffsetFetchResponseTopics
FetchedPartition: TypeAlias = OffsetFetchResponse.OffsetFetchResponsePartitions
TxnTopic: TypeAlias = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
TxnPartition: TypeAlias = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
DeletedTopic: TypeAlias = OffsetDeleteResponse.OffsetDeleteResponseTopic
DeletedPartition: TypeAlias = OffsetDeleteResponse.OffsetDeleteResponsePartition


class AskedCommit(NamedTuple):
    """An OffsetCommit whose topics and partitions exist."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    topics: Sequence[CommitTopic]
    metadata: Metadata = NO_METADATA
    retention_ms: int = NO_RETENTION_TIME


class CommitReply(NamedTuple):
    error: Errors
    """Of all partitions alike."""
    too_large: Sequence[tuple[str, int]] = ()
    """Topics and partitions whose metadata is: their offsets, and only theirs, are not taken."""


TAKEN: Final = CommitReply(Errors.NONE)


class OffsetCommands:
    """Decides about offsets. `simple_group` makes the group of a consumer that only commits, if none is there;
    `keep_alive` is told which member has committed."""

    __slots__ = ("_keep_alive", "_simple_group", "_state")

    def __init__(
        self,
        state: GroupState,
        simple_group: Callable[[str], Group],
        keep_alive: Callable[[Group, str, Now], None],
    ) -> None:
        self._state = state
        self._simple_group = simple_group
        self._keep_alive = keep_alive

    # ---- committing

    def commit(self, asked: AskedCommit, version: int, now: Now) -> Decision[CommitReply]:
        try:
            return self._commit(asked, version, now)
        except GroupError as refused:
            return Decision(CommitReply(refused.error))

    def _commit(self, asked: AskedCommit, version: int, now: Now) -> Decision[CommitReply]:
        group_id, generation, member_id, instance_id, topics, metadata, retention_ms = asked
        group = self._state.groups.get(group_id)
        if group is None:
            if generation >= 0:
                # From v9 on one error serves both protocols; older clients know only the generation's.
                raise GroupError(Errors.GROUP_ID_NOT_FOUND if version >= 9 else Errors.ILLEGAL_GENERATION)
            self._state.check_room()
            group = self._simple_group(group_id)
        check = group.check_offset_commit(member_id, instance_id, generation, transactional=False, version=version)
        self._keep_alive(group, member_id, now)
        too_large: list[tuple[str, int]] = []
        if metadata:
            limit = self._state.settings.offset_metadata_max_bytes
            too_large = [spot for spot, said in metadata.items() if len(said) > limit]
            if too_large:
                topics = _without(topics, too_large)
        if check is not None:
            for _, topic_id, rows in topics:
                for row in rows:
                    check(topic_id, row[0])
        expires = NO_EXPIRY if retention_ms == NO_RETENTION_TIME else now.wall + retention_ms
        reply = CommitReply(Errors.NONE, too_large) if too_large else TAKEN
        if not topics:
            return Decision(reply)
        return Decision(reply, (Commits(group_id, topics, now.wall, metadata, expires),))

    def txn_commit(self, request: TxnOffsetCommitRequest, version: int, now: Now) -> Decision[TxnOffsetCommitResponse]:
        """The records belong into a transactional batch of the request's producer."""
        try:
            return self._txn_commit(request, version, now)
        except GroupError as refused:
            # A transactional producer knows the classic errors only (KIP-447).
            stale = refused.error in (Errors.STALE_MEMBER_EPOCH, Errors.GROUP_ID_NOT_FOUND)
            return Decision(txn_commit_error(request, Errors.ILLEGAL_GENERATION if stale else refused.error))

    def _txn_commit(self, request: TxnOffsetCommitRequest, version: int, now: Now) -> Decision[TxnOffsetCommitResponse]:
        group = self._state.groups.get(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                raise GroupError(Errors.ILLEGAL_GENERATION)
            self._state.check_room()
            group = self._simple_group(request.group_id)
        check = group.check_offset_commit(
            request.member_id, request.group_instance_id, request.generation_id, transactional=True, version=version
        )
        records: list[CoordinatorRecord] = []
        topics: list[TxnTopic] = []
        for topic in request.topics:
            known = self._state.image.topics.get(topic.name)
            if check is not None and known is None:
                raise GroupError(Errors.ILLEGAL_GENERATION)
            results: list[TxnPartition] = []
            topics.append(TxnTopic(topic.name, results))
            for partition in topic.partitions:
                index = partition.partition_index
                metadata = partition.committed_metadata or ""
                if len(metadata) > self._state.settings.offset_metadata_max_bytes:
                    results.append(TxnPartition(index, Errors.OFFSET_METADATA_TOO_LARGE))
                    continue
                if check is not None and known is not None:
                    check(known.id, index)
                results.append(TxnPartition(index, 0))
                value = OffsetCommitValue(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, now.wall
                )
                key = OffsetCommitKey(request.group_id, topic.name, index)
                records.append(CoordinatorRecord(key, value, VALUE_VERSION))
        return Decision(TxnOffsetCommitResponse(topics=topics), tuple(records))

    # ---- fetching

    def fetch(self, asked: FetchGroup, *, require_stable: bool) -> Decision[FetchedGroup]:
        """`topics` None asks for every offset of the group."""
        group = self._state.groups.get(asked.group_id)
        topics: ByTopic = {}
        if group is not None:
            try:
                group.check_offset_fetch(asked.member_id, asked.member_epoch)
            except GroupError as refused:
                return Decision(FetchedGroup(group_id=asked.group_id, error_code=refused.error))
            topics = self._state.offsets.by_group.get(asked.group_id, {})
        unstable: Any = self._state.offsets.open_producers.get(asked.group_id, ()) if require_stable else ()
        if asked.topics is None:
            found = [
                FetchedTopic(
                    name=name,
                    partitions=[
                        _fetched(index, committed, ZERO_UUID, (name, index) in unstable)
                        for index, committed in partitions.items()
                    ],
                )
                for name, partitions in topics.items()
            ]
        else:
            found = [
                FetchedTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        _fetched(
                            index,
                            topics.get(topic.name, {}).get(index),
                            topic.topic_id,
                            (topic.name, index) in unstable,
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in asked.topics
            ]
        return Decision(FetchedGroup(group_id=asked.group_id, topics=found))

    # ---- deleting

    def delete(self, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        try:
            group = self._state.found(request.group_id)
            group.check_offset_delete()
        except GroupError as refused:
            return Decision(OffsetDeleteResponse(error_code=refused.error))
        records: list[CoordinatorRecord] = []
        topics: list[DeletedTopic] = []
        offsets = self._state.offsets
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            error = Errors.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else Errors.NONE
            results = []
            for asked in topic.partitions:
                index = asked.partition_index
                results.append(DeletedPartition(partition_index=index, error_code=error))
                spot = (request.group_id, topic.name, index)
                if not subscribed and (offsets.get(*spot) is not None or offsets.is_unstable(*spot)):
                    records.append(tombstone(OffsetCommitKey(*spot)))
            topics.append(DeletedTopic(name=topic.name, partitions=results))
        return Decision(OffsetDeleteResponse(topics=topics), tuple(records))

    def delete_all(self, group_id: str) -> list[CoordinatorRecord]:
        return [tombstone(OffsetCommitKey(group_id, *spot)) for spot in self._state.offsets.all_spots(group_id)]

    def topics_changed(self, before: MetadataImage, after: MetadataImage) -> list[CoordinatorRecord]:
        """Tombstones for offsets of topics that are gone. Looks at what is committed, not at all topics there are.

        An offset of the name's earlier life (another id) is not touched.
        """
        gone: dict[str, bytes | None] = {}

        def is_gone(name: str, topic_id: bytes) -> bool:
            if name not in gone:
                known = before.topics.get(name)
                gone[name] = None if known is None or known.id in after.topics_by_id else known.id
            return gone[name] is not None and topic_id in (ZERO_UUID, gone[name])

        offsets = self._state.offsets
        spots: dict[Spot, None] = {}
        for group, topics in offsets.by_group.items():
            for name, partitions in topics.items():
                for index, committed in partitions.items():
                    if is_gone(name, committed.topic_id):
                        spots[group, name, index] = None
        for staged in offsets.pending.values():
            for spot, committed in staged.items():
                if is_gone(spot[1], committed.topic_id):
                    spots[spot] = None
        return [tombstone(OffsetCommitKey(*spot)) for spot in spots]


def _without(topics: Sequence[CommitTopic], spots: Sequence[tuple[str, int]]) -> list[CommitTopic]:
    kept = [(name, topic_id, [row for row in rows if (name, row[0]) not in spots]) for name, topic_id, rows in topics]
    return [topic for topic in kept if topic[2]]


def _fetched(index: int, committed: Committed | None, topic_id: bytes, unstable: bool) -> FetchedPartition:
    if unstable:
        return FetchedPartition(index, NO_OFFSET, -1, "", Errors.UNSTABLE_OFFSET_COMMIT)
    if committed is None or (topic_id != ZERO_UUID and committed.topic_id not in (ZERO_UUID, topic_id)):
        return FetchedPartition(index, NO_OFFSET, -1, "", 0)
    return FetchedPartition(index, committed.offset, committed.leader_epoch, committed.metadata, 0)


def txn_commit_error(request: TxnOffsetCommitRequest, error: Errors) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnTopic(
                name=topic.name,
                partitions=[TxnPartition(partition.partition_index, error) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )
