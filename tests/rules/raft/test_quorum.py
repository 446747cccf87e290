"""A quorum of one, the file of its votes, its voters, and what it says of itself."""

import pytest

from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID, Millis, Uuid
from ottla.protocol import messages
from ottla.raft.describe import describe_quorum
from ottla.raft.election import CorruptQuorumState, ElectionState, decode, encode
from ottla.raft.exchange import Advance, AppendControl, Persist
from ottla.raft.roles import NEVER, Leader, Unattached
from ottla.raft.voters import (
    Voter,
    VoterEndpoint,
    VoterHistory,
    VotersAt,
    VoterSet,
    committed_by,
    voters_of,
    voters_record,
)
from tests.rules.raft.scene import Member, a_fetch, a_voter, key, of, the_voters

DIRECTORY = Uuid(bytes(range(16)))
ENDPOINT = VoterEndpoint("CONTROLLER", "127.0.0.1", 9093)
ONE = Voter(1, DIRECTORY, (ENDPOINT,))


def alone(**more: object) -> Member:
    return Member(1, (1,), **more)  # type: ignore[arg-type]


def leader_change(*voters: int) -> "messages.LeaderChangeMessage":
    kind = messages.LeaderChangeMessage
    listed = [kind.Voter(voter_id=i) for i in voters]
    return kind(version=0, leader_id=1, voters=listed, granting_voters=[kind.Voter(voter_id=1)])


def test_a_sole_voter_elects_itself_at_once_with_one_durable_write() -> None:
    member = alone()
    assert member.tick(0) == [
        Persist(ElectionState(epoch=1, leader_id=1)),
        AppendControl(1, (leader_change(1),)),
    ]
    assert (member.quorum.epoch, member.quorum.leader_id, member.quorum.is_active) == (1, 1, False)
    assert member.flush() == [Advance(1)]
    assert member.quorum.is_active
    assert member.tick(9999) == []


def test_each_start_begins_an_epoch_above_all_that_vote_and_log_have_seen() -> None:
    member = alone(election=ElectionState(epoch=7, leader_id=1))
    assert isinstance(member.quorum.role, Unattached)
    assert (member.quorum.epoch, member.quorum.role.due) == (7, 0)
    later = alone(election=ElectionState(epoch=7), epochs=(9,))
    later.tick(0)
    assert later.quorum.epoch == 10


def test_kip_853_the_first_epoch_writes_the_voters_into_the_log() -> None:
    effects = alone(dynamic=True).tick(0)
    version = messages.KRaftVersionRecord(version=0, kraft_version=1)
    voters = voters_record(the_voters(1, dynamic=True))
    assert of(AppendControl, effects) == [AppendControl(1, (leader_change(1), version, voters))]


def test_kip_853_later_epochs_write_the_voters_only_when_the_leader_has_moved() -> None:
    member = alone(dynamic=True)
    member.log.history.restart(5, the_voters(1, dynamic=True), 1)
    assert of(AppendControl, member.tick(0)) == [AppendControl(1, (leader_change(1),))]
    moved = alone(dynamic=True)
    elsewhere = a_voter(1)._replace(endpoints=(ENDPOINT,))
    moved.log.history.restart(5, VoterSet((elsewhere,)), 1)
    (effect,) = of(AppendControl, moved.tick(0))
    assert effect.records[2] == voters_record(the_voters(1, dynamic=True))


def test_nothing_is_committed_before_the_leader_has_flushed_a_record_of_its_own_epoch() -> None:
    member = alone(epochs=(1, 1))
    member.tick(0)
    assert member.quorum.high_watermark == -1
    assert member.flush() == [Advance(3)]
    assert member.flush() == []


def test_a_quorum_of_one_has_no_timers() -> None:
    member = alone()
    member.tick(0)
    member.flush()
    assert member.quorum.deadline() == NEVER


@pytest.mark.parametrize(
    ("ends", "voters", "committed"),
    [([5], 1, 5), ([5], 3, -1), ([5, 3], 3, 3), ([5, 3, 9], 3, 5), ([4, 4, 1, 1], 4, 1), ([9, 9, 9, 1, 1], 5, 9)],
)
def test_a_majority_commits(ends: list[int], voters: int, committed: int) -> None:
    assert committed_by(ends, voters) == committed


# Voters


def test_voters_survive_their_record() -> None:
    voters = VoterSet((ONE, Voter(2, DIRECTORY, (ENDPOINT, VoterEndpoint("TLS", "h", 1)), (0, 1))))
    assert voters_of(voters_record(voters)) == voters


def test_a_static_voter_is_known_by_its_id_and_a_dynamic_one_by_its_disk_too() -> None:
    assert the_voters(1).has(key(1)) and the_voters(1).has(key(1, disk=1))
    assert the_voters(1, dynamic=True).has(key(1)) and not the_voters(1, dynamic=True).has(key(1, disk=1))


def test_the_last_voters_in_the_log_count_until_they_are_truncated() -> None:
    one, two, three = the_voters(1), the_voters(1, 2), the_voters(1, 2, 3)
    history = VoterHistory(one)
    assert (history.voters, history.before, history.offset) == (one, one, -1)
    history.add(5, voters=two, kraft_version=1)
    history.add(9, voters=three)
    assert (history.voters, history.before, history.offset, history.kraft_version) == (three, two, 9, 1)
    assert history.at(10) == VotersAt(9, three, 1)
    assert history.at(9) == VotersAt(5, two, 1)
    assert history.at(5) == VotersAt(-1, one, 0)
    history.truncate_to(9)
    assert (history.voters, history.offset) == (two, 5)
    history.truncate_to(0)
    assert (history.voters, history.kraft_version) == (one, 0)


def test_voters_that_a_snapshot_holds_are_forgotten_below_it() -> None:
    history = VoterHistory(the_voters(1))
    for offset in (3, 6, 9):
        history.add(offset, voters=the_voters(*range(1, offset)), kraft_version=1)
    history.forget_before(7)
    assert history.at(7).offset == 6
    history.truncate_to(7)
    assert history.offset == 6


def test_voters_of_the_configuration_count_while_kraft_version_is_0() -> None:
    history = VoterHistory()
    history.use_static(the_voters(1, 2))
    history.restart(7, None, 0)
    assert history.voters == the_voters(1, 2)
    history.restart(7, the_voters(4, dynamic=True), 1)
    history.use_static(the_voters(1, 2, 3))
    assert history.voters == the_voters(4, dynamic=True)


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


def describe(member: Member, topic: str = "__cluster_metadata") -> "messages.DescribeQuorumResponse":
    kind = messages.DescribeQuorumRequest
    request = kind(topics=[kind.TopicData(topic_name=topic, partitions=[kind.PartitionData(partition_index=0)])])
    return describe_quorum(member.quorum, request, now=Millis(5000), wall_clock=Millis(1_005_000))


def test_the_leader_describes_its_quorum() -> None:
    leader = Member(1, (1, 2, 3), dynamic=True).lead(1000)
    leader.ask(a_fetch(2, 1), 2000)
    leader.append(7)
    leader.ask(a_fetch(2, 1, high_watermark=0), 3000)
    leader.ask(a_fetch(9, 2), 4000)
    reply = describe(leader)
    (partition,) = reply.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
    assert partition.high_watermark == 1
    states = [
        (v.replica_id, v.log_end_offset, v.last_fetch_timestamp, v.last_caught_up_timestamp)
        for v in (*partition.current_voters, *partition.observers)
    ]
    assert states == [
        (1, 2, 1_005_000, 1_005_000),
        (2, 1, 1_003_000, 1_002_000),
        (3, -1, -1, -1),
        (9, 2, 1_004_000, 1_004_000),
    ]
    assert [v.replica_directory_id for v in partition.current_voters] == [key(i).directory_id for i in (1, 2, 3)]
    assert [(n.node_id, n.listeners[0].port) for n in reply.nodes] == [(1, 9001), (2, 9002), (3, 9003)]


def test_only_the_leader_and_only_the_metadata_log_are_described() -> None:
    leader = alone()
    assert describe(leader).topics[0].partitions[0].error_code == Errors.NOT_LEADER_OR_FOLLOWER
    leader.tick(0)
    assert isinstance(leader.quorum.role, Leader)
    assert describe(leader, "t").topics[0].partitions[0].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION
