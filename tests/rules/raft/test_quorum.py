"""The quorum core: a sole voter elects itself, and commits what it has flushed."""

import pytest

from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID, Millis, Uuid
from ottla.protocol import messages
from ottla.raft.core import (
    Advance,
    AppendControl,
    EpochStarted,
    Flushed,
    Leader,
    Persist,
    Quorum,
    RequestVotes,
    Unattached,
)
from ottla.raft.describe import describe_quorum
from ottla.raft.election import CorruptQuorumState, ElectionState, decode, encode
from ottla.raft.voters import Voter, VoterEndpoint, VoterSet, committed_by, voters_of, voters_record

DIRECTORY = Uuid(bytes(range(16)))
ENDPOINT = VoterEndpoint("CONTROLLER", "127.0.0.1", 9093)
ONE = Voter(1, DIRECTORY, (ENDPOINT,))


def a_quorum(
    *others: int,
    kraft_version: int = 0,
    voters_offset: int = -1,
    election: ElectionState | None = None,
    last_log_epoch: int = 0,
    local: Voter = ONE,
) -> Quorum:
    voters = VoterSet((ONE, *(Voter(i) for i in others)))
    return Quorum.start(
        local,
        voters,
        kraft_version=kraft_version,
        voters_offset=voters_offset,
        election=election or ElectionState(),
        last_log_epoch=last_log_epoch,
        now=Millis(0),
    )


def a_leader() -> Quorum:
    quorum = a_quorum()
    quorum.tick(Millis(0))
    quorum.step(EpochStarted(10))
    return quorum


def leader_change(*voters: int) -> "messages.LeaderChangeMessage":
    kind = messages.LeaderChangeMessage
    listed = [kind.Voter(voter_id=i) for i in voters]
    return kind(version=0, leader_id=1, voters=listed, granting_voters=[kind.Voter(voter_id=1)])


def test_a_sole_voter_elects_itself_at_once_with_one_durable_write() -> None:
    quorum = a_quorum()
    assert quorum.tick(Millis(0)) == [
        Persist(ElectionState(epoch=1, leader_id=1)),
        AppendControl(1, (leader_change(1),)),
    ]
    assert (quorum.epoch, quorum.leader_id) == (1, 1)
    assert quorum.tick(Millis(9999)) == []


def test_with_other_voters_the_vote_is_durable_before_anyone_is_asked() -> None:
    quorum = a_quorum(2, 3)
    assert quorum.tick(Millis(0)) == [
        Persist(ElectionState(epoch=1, voted_id=1, voted_directory_id=DIRECTORY)),
        RequestVotes(1, (2, 3)),
    ]
    assert quorum.leader_id == -1


def test_each_start_begins_an_epoch_above_all_that_vote_and_log_have_seen() -> None:
    assert a_quorum(election=ElectionState(epoch=7, leader_id=1)).role == Unattached(7, Millis(0))
    later = a_quorum(election=ElectionState(epoch=7), last_log_epoch=9)
    later.tick(Millis(0))
    assert later.epoch == 10


def test_a_node_that_is_no_voter_never_stands_for_election() -> None:
    assert a_quorum(local=Voter(5)).tick(Millis(0)) == []


def test_kip_853_the_first_epoch_writes_the_voters_into_the_log() -> None:
    effects = a_quorum(kraft_version=1).tick(Millis(0))
    version = messages.KRaftVersionRecord(version=0, kraft_version=1)
    assert effects[1] == AppendControl(1, (leader_change(1), version, voters_record(VoterSet((ONE,)))))


def test_kip_853_later_epochs_write_the_voters_only_when_the_leader_has_moved() -> None:
    assert a_quorum(kraft_version=1, voters_offset=2).tick(Millis(0))[1] == AppendControl(1, (leader_change(1),))
    moved = ONE._replace(endpoints=(ENDPOINT._replace(port=1234),))
    effect = a_quorum(kraft_version=1, voters_offset=2, local=moved).tick(Millis(0))[1]
    assert isinstance(effect, AppendControl)
    assert effect.records[2] == voters_record(VoterSet((moved,)))


def test_nothing_is_committed_before_the_leader_has_flushed_a_record_of_its_own_epoch() -> None:
    quorum = a_leader()
    assert quorum.high_watermark == -1
    assert quorum.step(Flushed(10)) == []  # all of it belongs to earlier epochs: the Raft paper's figure 8
    assert quorum.step(Flushed(11)) == [Advance(11)]
    assert quorum.high_watermark == 11


def test_the_high_watermark_never_goes_back() -> None:
    quorum = a_leader()
    quorum.step(Flushed(20))
    assert quorum.step(Flushed(20)) == []
    assert quorum.step(Flushed(15)) == []
    assert quorum.high_watermark == 20


def test_a_flush_before_the_epoch_began_commits_nothing() -> None:
    quorum = a_quorum()
    assert quorum.step(Flushed(50)) == []
    quorum.tick(Millis(0))
    assert quorum.step(Flushed(50)) == []
    assert quorum.high_watermark == -1


@pytest.mark.parametrize(
    ("ends", "voters", "committed"),
    [([5], 1, 5), ([5], 3, -1), ([5, 3], 3, 3), ([5, 3, 9], 3, 5), ([4, 4, 1, 1], 4, 1), ([9, 9, 9, 1, 1], 5, 9)],
)
def test_a_majority_commits(ends: list[int], voters: int, committed: int) -> None:
    assert committed_by(ends, voters) == committed


def test_voters_survive_their_record() -> None:
    voters = VoterSet((ONE, Voter(2, DIRECTORY, (ENDPOINT, VoterEndpoint("TLS", "h", 1)), (0, 1))))
    assert voters_of(voters_record(voters)) == voters


# The quorum-state file, as Apache Kafka 4.3.1 wrote it


V0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
V1 = b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}'


def test_quorum_state_is_kafkas_json_to_the_byte() -> None:
    assert encode(ElectionState(4, 1), 0, [1]) == V0
    assert encode(ElectionState(2, -1, 1, DIRECTORY), 1, [1]) == V1


def test_quorum_state_is_read_in_both_versions() -> None:
    assert decode(V0) == ElectionState(4, 1, -1, ZERO_UUID)
    assert decode(V1 + b"\n") == ElectionState(2, -1, 1, DIRECTORY)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"{", b"[]", b"{}", V0.replace(b'_version":0', b'_version":2'), V0.replace(b"4", b'"x"'), V1[:40]],
)
def test_a_vote_that_cannot_be_read_is_not_guessed(data: bytes) -> None:
    with pytest.raises(CorruptQuorumState):
        decode(data)


# DescribeQuorum


def describe(quorum: Quorum, topic: str = "__cluster_metadata") -> "messages.DescribeQuorumResponse":
    kind = messages.DescribeQuorumRequest
    request = kind(topics=[kind.TopicData(topic_name=topic, partitions=[kind.PartitionData(partition_index=0)])])
    return describe_quorum(quorum, request, log_end_offset=12, now=Millis(77))


def test_the_leader_describes_its_quorum() -> None:
    quorum = a_leader()
    quorum.step(Flushed(11))
    reply = describe(quorum)
    (partition,) = reply.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    assert partition.high_watermark == 11
    assert [(v.replica_id, v.log_end_offset, v.last_fetch_timestamp) for v in partition.current_voters] == [(1, 12, 77)]
    assert [(n.node_id, n.listeners[0].port) for n in reply.nodes] == [(1, 9093)]


def test_only_the_leader_and_only_the_metadata_log_are_described() -> None:
    assert isinstance(a_leader().role, Leader)
    assert describe(a_quorum()).topics[0].partitions[0].error_code == Errors.NOT_LEADER_OR_FOLLOWER
    assert describe(a_leader(), "t").topics[0].partitions[0].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION
