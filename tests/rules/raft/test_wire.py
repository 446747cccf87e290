"""Between the core's vocabulary and Kafka's messages: nothing is lost on the way, at any version that is served."""

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import Message
from ottla.protocol.refusals import refused
from ottla.raft import wire
from ottla.raft.exchange import (
    AddVoterRequest,
    BeginEpochRequest,
    ChangeResponse,
    EndEpochRequest,
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
from tests.rules.raft.scene import a_snapshot, a_voter, key, place

PLACE = place(2)
REQUESTS: list[Request] = [
    VoteRequest(7, key(1), key(2), 6, 55, True),
    BeginEpochRequest(7, 1, place(1), key(2)),
    EndEpochRequest(7, 1, place(1), (key(3), key(2))),
    FetchRequest(key(1), 7, 55, 6, 50, 500, 1000),
    FetchSnapshotRequest(key(1), 7, a_snapshot(40, 5), 123, 1000),
    AddVoterRequest(a_voter(4), False, 2000),
    RemoveVoterRequest(key(4)),
    UpdateVoterRequest(7, a_voter(4)),
]
RESPONSES: list[tuple[Request, Response]] = [
    (REQUESTS[0], VoteResponse(Errors.NONE, 7, 2, PLACE, True)),
    (REQUESTS[0], VoteResponse(Errors.FENCED_LEADER_EPOCH, 8)),
    (REQUESTS[1], EpochResponse(Errors.NONE, 7, 2, PLACE)),
    (REQUESTS[2], EpochResponse(Errors.FENCED_LEADER_EPOCH, 8, 2, PLACE)),
    (REQUESTS[3], FetchResponse(Errors.NONE, 7, 2, PLACE, 44, 3, records=b"batches")),
    (REQUESTS[3], FetchResponse(Errors.NONE, 7, 2, PLACE, 44, 3, EpochEnd(5, 33))),
    (REQUESTS[3], FetchResponse(Errors.NONE, 7, 2, PLACE, 44, 3, None, a_snapshot(40, 5))),
    (REQUESTS[3], FetchResponse(Errors.NOT_LEADER_OR_FOLLOWER, 7)),
    (REQUESTS[4], FetchSnapshotResponse(Errors.NONE, 7, 2, PLACE, a_snapshot(40, 5), 400, 123, b"piece")),
    (REQUESTS[7], ChangeResponse(Errors.VOTER_NOT_FOUND, 7, 2, PLACE)),
]


def through(message: Message, version: int) -> Message:
    return type(message).decode(memoryview(message.encode(version)), version)


def latest(message: Message) -> int:
    return API[message.API_KEY].stable_max


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: type(r).__name__)
def test_a_request_arrives_as_it_was_meant(request_: Request) -> None:
    message = wire.write_request(request_, "a-cluster")
    assert message.cluster_id == "a-cluster"  # type: ignore[attr-defined]
    assert wire.read_request(through(message, latest(message))) == request_


@pytest.mark.parametrize(("request_", "response"), RESPONSES, ids=lambda r: type(r).__name__)
def test_a_response_arrives_as_it_was_meant(request_: Request, response: Response) -> None:
    asked = wire.write_request(request_, None)
    message = wire.write_response(asked, response, latest(asked), "CONTROLLER")
    assert wire.read_response(request_, through(message, latest(asked)), "CONTROLLER") == response


@pytest.mark.parametrize(("request_", "response"), RESPONSES, ids=lambda r: type(r).__name__)
def test_every_version_that_is_served_can_be_answered(request_: Request, response: Response) -> None:
    asked = wire.write_request(request_, None)
    api = API[asked.API_KEY]
    first = 12 if asked.API_KEY == 1 else api.min_version  # diverging epochs and snapshots came with Fetch v12
    for version in range(first, api.stable_max + 1):
        assert wire.write_response(asked, response, version, "CONTROLLER").encode(version)


def test_the_levels_of_kraft_version_are_read_from_api_versions() -> None:
    kind = messages.ApiVersionsResponse
    feature = kind.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    question = VersionsRequest(key(4))
    assert wire.read_response(question, kind(supported_features=[feature]), "C") == VersionsResponse(
        Errors.NONE, kraft_versions=(0, 1)
    )
    assert wire.read_response(question, kind(), "C") == VersionsResponse(Errors.NONE, kraft_versions=(0, 0))


@pytest.mark.parametrize("request_", REQUESTS[:5], ids=lambda r: type(r).__name__)
def test_only_the_metadata_partition_is_meant(request_: Request) -> None:
    for spoil in ("partition", "topic", "none"):
        message = wire.write_request(request_, None)
        topic = message.topics[0]  # type: ignore[attr-defined]
        if spoil == "none":
            topic.partitions = []
        elif spoil == "topic":
            for name in ("topic", "topic_name", "name", "topic_id"):
                if hasattr(topic, name):
                    setattr(topic, name, b"x" * 16 if name == "topic_id" else "other")
        else:
            partition = topic.partitions[0]
            setattr(partition, "partition_index" if hasattr(partition, "partition_index") else "partition", 1)
        with pytest.raises(wire.BadRequest):
            wire.read_request(message)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: type(r).__name__)
def test_a_refusal_of_the_whole_says_nothing_about_epochs(request_: Request) -> None:
    message = wire.write_request(request_, None)
    refusal = refused(message, Errors.INCONSISTENT_CLUSTER_ID)
    read = wire.read_response(request_, through(refusal, latest(message)), "C")
    assert read is None or (read.error, read.epoch) == (Errors.INCONSISTENT_CLUSTER_ID, -1)


def test_an_error_code_of_a_later_release_is_an_error() -> None:
    kind = messages.VoteResponse
    partition = kind.PartitionData(error_code=9999)
    message = kind(topics=[kind.TopicData(topic_name=wire.TOPIC, partitions=[partition])])
    read = wire.read_response(REQUESTS[0], message, "C")
    assert read is not None
    assert read.error is Errors.UNKNOWN_SERVER_ERROR
