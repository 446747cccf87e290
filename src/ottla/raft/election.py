"""The quorum-state file: epoch, leader and vote as one value, written as one (hashicorp/raft#661: apart, they allow two
votes in an epoch). One line of JSON in Kafka's two versions: 0 for static voters, 1 for voters in the log."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.model.ids import ZERO_UUID, Uuid, parse_uuid, uuid_text

FILE_NAME: Final = "quorum-state"
NOBODY: Final = -1


class CorruptQuorumState(ValueError):
    """A vote that cannot be read must not be guessed: the node stays down until someone looks."""


class ElectionState(NamedTuple):
    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: Uuid = ZERO_UUID


def encode(state: ElectionState, version: int, voter_ids: Sequence[int]) -> bytes:
    content: dict[str, object] = {"leaderId": state.leader_id, "leaderEpoch": state.epoch, "votedId": state.voted_id}
    if version == 0:
        voters = [{"voterId": i} for i in voter_ids]
        content = {"clusterId": "", **content, "appliedOffset": 0, "currentVoters": voters}
    else:
        content["votedDirectoryId"] = uuid_text(state.voted_directory_id)
    content["data_version"] = version
    return json.dumps(content, separators=(",", ":")).encode()


def decode(data: bytes) -> ElectionState:
    try:
        content = json.loads(data.splitlines()[0])
        version = content["data_version"]
        if version not in (0, 1):
            raise CorruptQuorumState(f"{FILE_NAME} has data_version {version}; 0 and 1 are known")
        directory = parse_uuid(content["votedDirectoryId"]) if version == 1 else ZERO_UUID
        epoch, leader, voted = content["leaderEpoch"], content["leaderId"], content["votedId"]
        if any(type(number) is not int for number in (epoch, leader, voted)):
            raise CorruptQuorumState(f"{FILE_NAME} holds something else than numbers: {content}")
    except (ValueError, KeyError, IndexError, TypeError) as error:
        if isinstance(error, CorruptQuorumState):
            raise
        raise CorruptQuorumState(f"{FILE_NAME} cannot be read: {data[:200]!r}") from error
    return ElectionState(epoch, leader, voted, directory)
