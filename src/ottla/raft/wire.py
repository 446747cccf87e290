"""Between the core's vocabulary and Kafka's messages: topics, partitions, directory ids and endpoints are put on here.

A request is read into the core's form by `read_request`, the core's response is written by `write_response` for the
version that was asked with; `write_request` and `read_response` do the same for requests of our own.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.protocol import codec, messages
from ottla.protocol.codec import Message
from ottla.raft.election import NOBODY
from ottla.raft.exchange import (
    AddVoterRequest,
    BeginEpochRequest,
    ChangeResponse,
    EndEpochRequest,
    Endpoints,
    EpochEnd,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import ReplicaKey, Voter, VoterEndpoint

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = Uuid((1).to_bytes(16, "big"))
KRAFT_VERSION: Final = "kraft.version"


class BadRequest(Exception):
    """Not about the metadata partition, or not about exactly that."""


def _error(code: int) -> Errors:
    try:
        return Errors(code)
    except ValueError:
        return Errors.UNKNOWN_SERVER_ERROR


def _one(topics: Sequence[Any], name: Callable[[Any], bool]) -> Any:
    if len(topics) != 1 or not name(topics[0]) or len(topics[0].partitions) != 1:
        raise BadRequest
    return topics[0].partitions[0]


def _named(topic: Any) -> bool:
    return bool(topic.topic_name == TOPIC)


def _endpoints(listed: Sequence[Any]) -> Endpoints:
    return tuple(VoterEndpoint(e.name, e.host, e.port) for e in listed)


# Requests that come in


def read_request(request: Message) -> Request:
    """Raises BadRequest."""
    return _READ_REQUEST[request.API_KEY](request)


def _read_vote(request: Any) -> VoteRequest:
    p = _one(request.topics, _named)
    _only(p.partition_index)
    voter = None if request.voter_id < 0 else ReplicaKey(request.voter_id, Uuid(p.voter_directory_id))
    candidate = ReplicaKey(p.replica_id, Uuid(p.replica_directory_id))
    return VoteRequest(p.replica_epoch, candidate, voter, p.last_offset_epoch, p.last_offset, p.pre_vote)


def _only(partition: int) -> None:
    if partition != 0:
        raise BadRequest


def _read_begin(request: Any) -> BeginEpochRequest:
    p = _one(request.topics, _named)
    _only(p.partition_index)
    voter = None if request.voter_id < 0 else ReplicaKey(request.voter_id, Uuid(p.voter_directory_id))
    return BeginEpochRequest(p.leader_epoch, p.leader_id, _endpoints(request.leader_endpoints), voter)


def _read_end(request: Any) -> EndEpochRequest:
    p = _one(request.topics, _named)
    _only(p.partition_index)
    successors = [ReplicaKey(c.candidate_id, Uuid(c.candidate_directory_id)) for c in p.preferred_candidates]
    successors = successors or [ReplicaKey(i) for i in p.preferred_successors]
    return EndEpochRequest(p.leader_epoch, p.leader_id, _endpoints(request.leader_endpoints), tuple(successors))


def _read_fetch(request: Any) -> FetchRequest:
    p = _one(request.topics, lambda t: t.topic == TOPIC or t.topic_id == TOPIC_ID)
    _only(p.partition)
    replica_id = request.replica_state.replica_id
    key = ReplicaKey(request.replica_id if replica_id < 0 else replica_id, Uuid(p.replica_directory_id))
    return FetchRequest(
        key,
        p.current_leader_epoch,
        p.fetch_offset,
        p.last_fetched_epoch,
        p.high_watermark,
        request.max_wait_ms,
        request.max_bytes,
    )


def _read_fetch_snapshot(request: Any) -> FetchSnapshotRequest:
    p = _one(request.topics, lambda t: t.name == TOPIC)
    _only(p.partition)
    snapshot = SnapshotId(p.snapshot_id.end_offset, p.snapshot_id.epoch)
    key = ReplicaKey(request.replica_id, Uuid(p.replica_directory_id))
    return FetchSnapshotRequest(key, p.current_leader_epoch, snapshot, p.position, request.max_bytes)


def _read_add(request: Any) -> AddVoterRequest:
    voter = Voter(request.voter_id, Uuid(request.voter_directory_id), _endpoints(request.listeners))
    return AddVoterRequest(voter, request.ack_when_committed, request.timeout_ms)


def _read_remove(request: Any) -> RemoveVoterRequest:
    return RemoveVoterRequest(ReplicaKey(request.voter_id, Uuid(request.voter_directory_id)))


def _read_update(request: Any) -> UpdateVoterRequest:
    feature = request.kraft_version_feature
    versions = (feature.min_supported_version, feature.max_supported_version)
    voter = Voter(request.voter_id, Uuid(request.voter_directory_id), _endpoints(request.listeners), versions)
    return UpdateVoterRequest(request.current_leader_epoch, voter)


_READ_REQUEST: Final[dict[int, Callable[[Any], Request]]] = {
    52: _read_vote,
    53: _read_begin,
    54: _read_end,
    1: _read_fetch,
    59: _read_fetch_snapshot,
    80: _read_add,
    81: _read_remove,
    82: _read_update,
}


# Responses that go out


def write_response(request: Message, response: Response, version: int, listener: str) -> Message:
    """`listener` is the one the request came in by: the leader's place on it is told."""
    return _WRITE_RESPONSE[request.API_KEY](response, version, listener)


def _place(response: Response, listener: str) -> tuple[int, str, int] | None:
    if response.leader_id == NOBODY or not response.endpoints:
        return None
    found = next((e for e in response.endpoints if e.name == listener), response.endpoints[0])
    return response.leader_id, found.host, found.port


def _node_endpoints(kind: Any, response: Response, listener: str, *, known: bool) -> list[Any]:
    place = _place(response, listener) if known else None
    return [] if place is None else [kind.NodeEndpoint(node_id=place[0], host=place[1], port=place[2])]


def _write_vote(response: VoteResponse, version: int, listener: str) -> Message:
    kind = messages.VoteResponse
    p = kind.PartitionData(
        partition_index=0,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        vote_granted=response.granted,
    )
    topics = [kind.TopicData(topic_name=TOPIC, partitions=[p])]
    return kind(topics=topics, node_endpoints=_node_endpoints(kind, response, listener, known=version >= 1))


def _write_begin(response: EpochResponse, version: int, listener: str) -> Message:
    kind = messages.BeginQuorumEpochResponse
    p = kind.PartitionData(
        partition_index=0, error_code=response.error, leader_id=response.leader_id, leader_epoch=response.epoch
    )
    topics = [kind.TopicData(topic_name=TOPIC, partitions=[p])]
    return kind(topics=topics, node_endpoints=_node_endpoints(kind, response, listener, known=version >= 1))


def _write_end(response: EpochResponse, version: int, listener: str) -> Message:
    kind = messages.EndQuorumEpochResponse
    p = kind.PartitionData(
        partition_index=0, error_code=response.error, leader_id=response.leader_id, leader_epoch=response.epoch
    )
    topics = [kind.TopicData(topic_name=TOPIC, partitions=[p])]
    return kind(topics=topics, node_endpoints=_node_endpoints(kind, response, listener, known=version >= 1))


def _write_fetch(response: FetchResponse, version: int, listener: str) -> Message:
    kind = messages.FetchResponse
    records: Any = response.records
    p = kind.PartitionData(
        partition_index=0,
        error_code=response.error,
        high_watermark=response.high_watermark,
        last_stable_offset=response.high_watermark,
        log_start_offset=response.log_start,
        current_leader=kind.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.epoch),
        aborted_transactions=None,
        records=b"" if records is None else records,
    )
    if response.diverging is not None:
        p.diverging_epoch = kind.EpochEndOffset(epoch=response.diverging.epoch, end_offset=response.diverging.offset)
    if response.snapshot is not None:
        p.snapshot_id = kind.SnapshotId(end_offset=response.snapshot.offset, epoch=response.snapshot.epoch)
    topic = kind.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[p])
    return kind(responses=[topic], node_endpoints=_node_endpoints(kind, response, listener, known=version >= 17))


def _write_fetch_snapshot(response: FetchSnapshotResponse, version: int, listener: str) -> Message:
    kind = messages.FetchSnapshotResponse
    data: Any = response.data
    snapshot = response.snapshot or SnapshotId(-1, -1)
    p = kind.PartitionSnapshot(
        index=0,
        error_code=response.error,
        snapshot_id=kind.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        current_leader=kind.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.epoch),
        size=response.size,
        position=response.position,
        unaligned_records=b"" if data is None else data,
    )
    topics = [kind.TopicSnapshot(name=TOPIC, partitions=[p])]
    return kind(topics=topics, node_endpoints=_node_endpoints(kind, response, listener, known=version >= 1))


def _write_add(response: ChangeResponse, version: int, listener: str) -> Message:
    return messages.AddRaftVoterResponse(error_code=response.error, error_message=_message(response))


def _write_remove(response: ChangeResponse, version: int, listener: str) -> Message:
    return messages.RemoveRaftVoterResponse(error_code=response.error, error_message=_message(response))


def _message(response: ChangeResponse) -> str | None:
    return None if response.error is Errors.NONE else response.message or response.error.text


def _write_update(response: ChangeResponse, version: int, listener: str) -> Message:
    kind = messages.UpdateRaftVoterResponse
    _, host, port = _place(response, listener) or (NOBODY, "", 0)
    leader = kind.CurrentLeader(leader_id=response.leader_id, leader_epoch=response.epoch, host=host, port=port)
    return kind(error_code=response.error, current_leader=leader)


_WRITE_RESPONSE: Final[dict[int, Callable[[Any, int, str], Message]]] = {
    52: _write_vote,
    53: _write_begin,
    54: _write_end,
    1: _write_fetch,
    59: _write_fetch_snapshot,
    80: _write_add,
    81: _write_remove,
    82: _write_update,
}


# Requests that go out


def write_request(request: Request, cluster_id: str | None) -> codec.Request[Message]:
    return _WRITE_REQUEST[type(request)](request, cluster_id)


def _write_vote_request(request: VoteRequest, cluster_id: str | None) -> codec.Request[Message]:
    kind = messages.VoteRequest
    voter = request.voter or ReplicaKey(NOBODY)
    p = kind.PartitionData(
        partition_index=0,
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    topics = [kind.TopicData(topic_name=TOPIC, partitions=[p])]
    return kind(cluster_id=cluster_id, voter_id=voter.id, topics=topics)


def _write_begin_request(request: BeginEpochRequest, cluster_id: str | None) -> codec.Request[Message]:
    kind = messages.BeginQuorumEpochRequest
    voter = request.voter or ReplicaKey(NOBODY)
    p = kind.PartitionData(
        partition_index=0,
        voter_directory_id=voter.directory_id,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    return kind(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=[kind.TopicData(topic_name=TOPIC, partitions=[p])],
        leader_endpoints=[kind.LeaderEndpoint(name=e.name, host=e.host, port=e.port) for e in request.endpoints],
    )


def _write_end_request(request: EndEpochRequest, cluster_id: str | None) -> codec.Request[Message]:
    kind = messages.EndQuorumEpochRequest
    p = kind.PartitionData(
        partition_index=0,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_candidates=[
            kind.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id) for key in request.successors
        ],
    )
    return kind(
        cluster_id=cluster_id,
        topics=[kind.TopicData(topic_name=TOPIC, partitions=[p])],
        leader_endpoints=[kind.LeaderEndpoint(name=e.name, host=e.host, port=e.port) for e in request.endpoints],
    )


def _write_fetch_request(request: FetchRequest, cluster_id: str | None) -> codec.Request[Message]:
    kind = messages.FetchRequest
    p = kind.FetchPartition(
        partition=0,
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_epoch,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    return kind(
        cluster_id=cluster_id,
        replica_state=kind.ReplicaState(replica_id=request.replica.id),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[kind.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[p])],
    )


def _write_fetch_snapshot_request(request: FetchSnapshotRequest, cluster_id: str | None) -> codec.Request[Message]:
    kind = messages.FetchSnapshotRequest
    p = kind.PartitionSnapshot(
        partition=0,
        current_leader_epoch=request.epoch,
        snapshot_id=kind.SnapshotId(end_offset=request.snapshot.offset, epoch=request.snapshot.epoch),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return kind(
        cluster_id=cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=[kind.TopicSnapshot(name=TOPIC, partitions=[p])],
    )


def _write_add_request(request: AddVoterRequest, cluster_id: str | None) -> codec.Request[Message]:
    kind = messages.AddRaftVoterRequest
    voter = request.voter
    return kind(
        cluster_id=cluster_id,
        timeout_ms=request.timeout_ms,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        listeners=[kind.Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
        ack_when_committed=request.ack_when_committed,
    )


def _write_remove_request(request: RemoveVoterRequest, cluster_id: str | None) -> codec.Request[Message]:
    voter = request.voter
    return messages.RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter.id, voter_directory_id=voter.directory_id
    )


def _write_update_request(request: UpdateVoterRequest, cluster_id: str | None) -> codec.Request[Message]:
    kind = messages.UpdateRaftVoterRequest
    voter = request.voter
    low, high = voter.kraft_versions
    return kind(
        cluster_id=cluster_id,
        current_leader_epoch=request.epoch,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        listeners=[kind.Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
        kraft_version_feature=kind.KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
    )


def _write_versions_request(request: VersionsRequest, cluster_id: str | None) -> codec.Request[Message]:
    return messages.ApiVersionsRequest(client_software_name="ottla", client_software_version="quorum")


_WRITE_REQUEST: Final[dict[type, Callable[[Any, str | None], codec.Request[Message]]]] = {
    VoteRequest: _write_vote_request,
    BeginEpochRequest: _write_begin_request,
    EndEpochRequest: _write_end_request,
    FetchRequest: _write_fetch_request,
    FetchSnapshotRequest: _write_fetch_snapshot_request,
    AddVoterRequest: _write_add_request,
    RemoveVoterRequest: _write_remove_request,
    UpdateVoterRequest: _write_update_request,
    VersionsRequest: _write_versions_request,
}


# Responses that come in


def read_response(request: Request, response: Message, listener: str) -> Response | None:
    """None for an answer that says nothing: a refusal of the whole, or one about no partition."""
    try:
        return _READ_RESPONSE[type(request)](response, listener)
    except IndexError:
        return None


def _leader_place(listed: Sequence[Any], leader_id: int, listener: str) -> Endpoints:
    return tuple(VoterEndpoint(listener, n.host, n.port) for n in listed if n.node_id == leader_id)


def _read_vote_response(response: Any, listener: str) -> VoteResponse | None:
    if response.error_code or not response.topics:
        return None
    p = response.topics[0].partitions[0]
    place = _leader_place(response.node_endpoints, p.leader_id, listener)
    return VoteResponse(_error(p.error_code), p.leader_epoch, p.leader_id, place, p.vote_granted)


def _read_epoch_response(response: Any, listener: str) -> EpochResponse | None:
    if response.error_code or not response.topics:
        return None
    p = response.topics[0].partitions[0]
    place = _leader_place(response.node_endpoints, p.leader_id, listener)
    return EpochResponse(_error(p.error_code), p.leader_epoch, p.leader_id, place)


def _read_fetch_response(response: Any, listener: str) -> FetchResponse | None:
    if response.error_code or not response.responses:
        return None
    p = response.responses[0].partitions[0]
    leader = p.current_leader
    diverging, snapshot = p.diverging_epoch, p.snapshot_id
    return FetchResponse(
        _error(p.error_code),
        leader.leader_epoch,
        leader.leader_id,
        _leader_place(response.node_endpoints, leader.leader_id, listener),
        p.high_watermark,
        p.log_start_offset,
        EpochEnd(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        SnapshotId(snapshot.end_offset, snapshot.epoch) if snapshot.epoch >= 0 and snapshot.end_offset >= 0 else None,
        bytes(p.records) if p.records else None,
    )


def _read_fetch_snapshot_response(response: Any, listener: str) -> FetchSnapshotResponse | None:
    if response.error_code or not response.topics:
        return None
    p = response.topics[0].partitions[0]
    leader = p.current_leader
    return FetchSnapshotResponse(
        _error(p.error_code),
        leader.leader_epoch,
        leader.leader_id,
        _leader_place(response.node_endpoints, leader.leader_id, listener),
        SnapshotId(p.snapshot_id.end_offset, p.snapshot_id.epoch),
        p.size,
        p.position,
        bytes(p.unaligned_records or b""),
    )


def _read_change_response(response: Any, listener: str) -> ChangeResponse:
    return ChangeResponse(_error(response.error_code), -1)


def _read_update_response(response: Any, listener: str) -> ChangeResponse:
    leader = response.current_leader
    place: Endpoints = (VoterEndpoint(listener, leader.host, leader.port),) if leader.host else ()
    return ChangeResponse(_error(response.error_code), leader.leader_epoch, leader.leader_id, place)


def _read_versions_response(response: Any, listener: str) -> VersionsResponse:
    found = next((f for f in response.supported_features if f.name == KRAFT_VERSION), None)
    versions = (0, 0) if found is None else (found.min_version, found.max_version)
    return VersionsResponse(_error(response.error_code), kraft_versions=versions)


_READ_RESPONSE: Final[dict[type, Callable[[Any, str], Response | None]]] = {
    VoteRequest: _read_vote_response,
    BeginEpochRequest: _read_epoch_response,
    EndEpochRequest: _read_epoch_response,
    FetchRequest: _read_fetch_response,
    FetchSnapshotRequest: _read_fetch_snapshot_response,
    AddVoterRequest: _read_change_response,
    RemoveVoterRequest: _read_change_response,
    UpdateVoterRequest: _read_update_response,
    VersionsRequest: _read_versions_response,
}
