"""The metadata log travels by fetches: what the leader answers, what counts as committed, what a follower may ask."""

import pytest

from ottla.model.errors import Errors
from ottla.raft.core import Quorum
from ottla.raft.election import ElectionState
from ottla.raft.exchange import (
    Advance,
    Append,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    InstallSnapshot,
    Reply,
    Send,
    StoreSnapshot,
    Truncate,
)
from ottla.raft.roles import BrokenQuorum, Follower, Leader, Unattached
from tests.rules.raft.scene import (
    TIMING,
    Member,
    a_fetch,
    a_snapshot,
    a_vote_request,
    answer,
    answers,
    from_leader,
    key,
    of,
    place,
    requests,
)


def a_leader(*epochs: int, voters: tuple[int, ...] = (1, 2, 3), dynamic: bool = False) -> Member:
    """Leads the epoch after those in its log; all of its log is flushed."""
    return Member(1, voters, epochs=epochs, dynamic=dynamic).lead()


# The leader


def test_the_leader_counts_its_own_log_only_as_far_as_it_is_flushed() -> None:
    leader = a_leader()
    leader.ask(a_fetch(2, 1), 1000)
    assert leader.quorum.high_watermark == 1
    leader.append(7)
    assert leader.ask(a_fetch(2, 2), 1001) == []
    assert leader.quorum.high_watermark == 1
    assert Advance(2) in leader.flush(1002)


def test_the_raft_papers_figure_8_records_of_earlier_epochs_are_not_committed_by_count() -> None:
    leader = a_leader(1, 1, 2)
    assert leader.quorum.epoch == 3
    assert of(Advance, leader.ask(a_fetch(2, 3, epoch=3, last_epoch=2), 1000)) == []
    assert of(Advance, leader.ask(a_fetch(2, 4, epoch=3), 1001)) == [Advance(4)]
    assert leader.quorum.is_active


def test_a_majority_commits_and_observers_do_not_count() -> None:
    leader = a_leader(voters=(1, 2, 3, 4, 5))
    leader.append(7)
    leader.flush()
    for observer in (6, 7, 8):
        leader.ask(a_fetch(observer, 2), 1000)
    leader.ask(a_fetch(2, 2), 1000)
    assert leader.quorum.high_watermark == -1
    assert Advance(2) in leader.ask(a_fetch(3, 2), 1000)


def test_a_voter_with_another_disk_is_an_observer() -> None:
    leader = a_leader(voters=(1, 2, 3), dynamic=True)
    leader.ask(a_fetch(key(2, disk=1), 1), 1000)
    assert leader.quorum.high_watermark == -1
    leader.ask(a_fetch(key(2), 1), 1000)
    assert leader.quorum.high_watermark == 1


def test_the_high_watermark_never_goes_back() -> None:
    leader = a_leader()
    leader.append(7)
    leader.flush()
    leader.ask(a_fetch(2, 2), 1000)
    assert of(Advance, leader.ask(a_fetch(2, 1), 1001)) == []
    assert leader.quorum.high_watermark == 2


def test_a_fetch_at_the_end_waits_for_records() -> None:
    leader = a_leader()
    leader.ask(a_fetch(2, 1), 1000, token="2")
    assert leader.ask(a_fetch(3, 1), 1000, token="3") == []
    woken = of(Reply, leader.append(7, 1100))
    assert [(r.token, r.read_from, r.response.error) for r in woken] == [("2", 1, Errors.NONE), ("3", 1, Errors.NONE)]


def test_kip_1166_a_fetch_that_knows_less_of_the_high_watermark_is_answered_at_once() -> None:
    leader = a_leader()
    (reply,) = of(Reply, leader.ask(a_fetch(3, 1, high_watermark=-1), 1000, token="3"))
    assert isinstance(reply.response, FetchResponse)
    assert (reply.token, reply.read_from, reply.response.high_watermark) == ("3", -1, 1)
    leader.append(7)
    leader.flush()
    assert leader.ask(a_fetch(3, 2, high_watermark=1), 1001)[0] == Advance(2)
    assert leader.ask(a_fetch(2, 2, high_watermark=2), 1002) == []


def test_a_fetch_waits_no_longer_than_it_wants_to() -> None:
    leader = a_leader()
    leader.ask(a_fetch(2, 1, max_wait_ms=300), 1000, token="2")
    assert leader.quorum.deadline() == 1300
    assert leader.tick(1299) == []
    (reply,) = of(Reply, leader.tick(1300))
    assert (reply.token, reply.read_from) == ("2", -1)
    assert len(of(Reply, leader.ask(a_fetch(2, 1, max_wait_ms=0), 1400))) == 1


def test_a_newer_fetch_of_the_same_replica_ends_the_older_one() -> None:
    leader = a_leader()
    leader.ask(a_fetch(2, 1), 1000, token="old")
    assert [r.token for r in of(Reply, leader.ask(a_fetch(2, 1), 1001, token="new"))] == ["old"]


@pytest.mark.parametrize(
    ("epoch", "error"), [(2, Errors.FENCED_LEADER_EPOCH), (4, Errors.UNKNOWN_LEADER_EPOCH), (3, Errors.NONE)]
)
def test_only_fetches_of_the_leaders_own_epoch_are_served(epoch: int, error: Errors) -> None:
    leader = a_leader(1, 2)
    reply = answer(leader.ask(a_fetch(2, 2, epoch=epoch, last_epoch=2), 1000))
    assert (reply.error, reply.epoch, reply.leader_id, reply.endpoints) == (error, 3, 1, place(1))


def test_who_does_not_lead_says_who_does() -> None:
    member = Member(1).follow(2, epoch=4)
    reply = answer(member.ask(a_fetch(3, 0, epoch=4, last_epoch=0)))
    assert reply == FetchResponse(Errors.NOT_LEADER_OR_FOLLOWER, 4, 2, place(2))


@pytest.mark.parametrize(
    "bad", [a_fetch(2, -1), a_fetch(2, 0, last_epoch=-1), a_fetch(2, 0, last_epoch=2), a_fetch(2, 0, max_wait_ms=-1)]
)
def test_a_fetch_that_makes_no_sense_is_refused(bad: FetchRequest) -> None:
    assert answer(a_leader().ask(bad, 1000)).error is Errors.INVALID_REQUEST


def test_those_who_wait_are_told_when_the_leader_is_none_any_more() -> None:
    leader = a_leader()
    leader.ask(a_fetch(2, 1), 1000, token="2")
    effects = leader.ask(a_vote_request(3, 2, last=(1, 9)), 1100, token="vote")
    errors = {r.token: r.response.error for r in of(Reply, effects)}
    assert errors == {"2": Errors.NOT_LEADER_OR_FOLLOWER, "vote": Errors.NONE}


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (2, 1, None),
        (3, 1, EpochEnd(1, 2)),  # longer in that epoch than the leader
        (4, 2, EpochEnd(1, 2)),  # an epoch the leader never saw
        (3, 3, None),
        (0, 0, None),
    ],
)
def test_kip_595_a_log_that_parts_from_the_leaders_is_told_where(
    offset: int, last_epoch: int, diverging: EpochEnd | None
) -> None:
    leader = a_leader(1, 1, 3, 3)
    reply = answers(leader.ask(a_fetch(2, offset, epoch=4, last_epoch=last_epoch), 1000))[0]
    assert isinstance(reply, FetchResponse)
    assert reply.diverging == diverging
    assert (leader.quorum.log.end_offset, reply.snapshot) == (5, None)
    assert isinstance(leader.quorum.role, Leader)
    assert leader.quorum.role.replicas[2].end_offset == (-1 if diverging else offset)


def test_who_is_behind_the_log_gets_a_snapshot() -> None:
    leader = a_leader(1, 1, 3, 3)
    leader.ask(a_fetch(2, 5, epoch=4), 1000)
    leader.log.take_snapshot(3)
    for offset, epoch in ((0, 0), (2, 1), (2, 3), (3, 1)):
        reply = answer(leader.ask(a_fetch(3, offset, epoch=4, last_epoch=epoch), 1000))
        assert reply.snapshot == a_snapshot(3, 3)
    assert answer(leader.ask(a_fetch(3, 3, epoch=4, last_epoch=3), 1000)).snapshot is None


def test_snapshots_are_served_in_pieces() -> None:
    leader = a_leader(1, 1)
    leader.ask(a_fetch(2, 3, epoch=2), 1000)
    leader.log.take_snapshot(3)
    wanted = a_snapshot(3, 2)

    def asked(snapshot: object, position: int, epoch: int = 2) -> FetchSnapshotResponse:
        request = FetchSnapshotRequest(key(3), epoch, snapshot, position, 10)  # type: ignore[arg-type]
        response = answer(leader.ask(request, 1000))
        assert isinstance(response, FetchSnapshotResponse)
        return response

    size = leader.log.snapshot_size(wanted)
    assert size is not None
    assert asked(wanted, 10) == FetchSnapshotResponse(Errors.NONE, 2, 1, place(1), wanted, size, 10)
    assert asked(wanted, size).error is Errors.POSITION_OUT_OF_RANGE
    assert asked(wanted, -1).error is Errors.POSITION_OUT_OF_RANGE
    assert asked(a_snapshot(9, 9), 0).error is Errors.SNAPSHOT_NOT_FOUND
    assert asked(a_snapshot(0, 0), 0).error is Errors.SNAPSHOT_NOT_FOUND
    assert asked(wanted, 0, epoch=1).error is Errors.FENCED_LEADER_EPOCH


# The follower


def test_a_follower_fetches_from_the_end_of_its_log() -> None:
    member = Member(1, epochs=(1, 1)).follow(2, epoch=3)
    assert member.fetch == FetchRequest(key(1), 3, 2, 1, -1, TIMING.max_wait_ms, TIMING.fetch_max_bytes)


def test_the_offset_of_a_fetch_is_on_the_disk() -> None:
    member = Member(1).follow(2)
    assert of(Append, member.fetched(from_leader(member, (5, 6)))) != []
    assert member.log.end_offset == 2
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.in_flight is None
    ((to, request),) = requests(member.flush())
    assert isinstance(request, FetchRequest)
    assert (to, request.offset, request.last_epoch) == (2, 2, 1)


def test_a_restarted_follower_flushes_before_it_promises_anything() -> None:
    member = Member(1, epochs=(1, 1), election=ElectionState(1, leader_id=2))
    member.log.flushed = -1
    assert requests(member.tick(0)) == []
    assert [r.offset for _, r in requests(member.flush()) if isinstance(r, FetchRequest)] == [2]


def test_the_high_watermark_follows_the_leaders_as_far_as_the_own_log_goes() -> None:
    member = Member(1).follow(2)
    assert of(Advance, member.fetched(from_leader(member, (5, 6), high_watermark=9))) == [Advance(2)]
    member.flush()
    assert of(Advance, member.fetched(from_leader(member, (7,), high_watermark=3))) == [Advance(3)]
    member.flush()
    assert of(Advance, member.fetched(from_leader(member, high_watermark=2))) == []


def test_kafka_14704_truncation_comes_before_the_high_watermark() -> None:
    member = Member(1, epochs=(1, 1, 1)).follow(2, epoch=3)
    response = from_leader(member, epoch=3, high_watermark=3, diverging=EpochEnd(1, 2))
    effects = member.fetched(response)
    assert of(Advance, effects) == []
    assert of(Truncate, effects) == [Truncate(2)]
    assert member.fetch.offset == 2


@pytest.mark.parametrize(
    ("own", "diverging", "end"),
    [
        ((1, 1, 1), EpochEnd(1, 2), 2),
        ((1, 1, 2), EpochEnd(1, 5), 2),  # KIP-279: ours of that epoch ends earlier
        ((1, 1, 3), EpochEnd(2, 4), 2),  # an epoch we never saw: to the end of the one before
        ((3, 3), EpochEnd(2, 4), 0),
        ((1, 1), EpochEnd(0, 0), 0),
    ],
)
def test_a_follower_truncates_to_where_both_logs_can_agree(own: tuple[int, ...], diverging: EpochEnd, end: int) -> None:
    member = Member(1, epochs=own).follow(2, epoch=9)
    assert of(Truncate, member.fetched(from_leader(member, epoch=9, diverging=diverging))) == [Truncate(end)]


def test_what_is_committed_is_never_truncated() -> None:
    member = Member(1).follow(2)
    member.fetched(from_leader(member, (5, 6), high_watermark=2))
    member.flush()
    with pytest.raises(BrokenQuorum, match="truncate to 1, below 2"):
        member.fetched(from_leader(member, diverging=EpochEnd(1, 1)))


def test_an_answer_to_another_fetch_than_the_last_is_not_taken() -> None:
    member = Member(1).follow(2)
    old = member.fetch
    response = from_leader(member, (5,))
    member.fetched(response)
    assert member.hear(2, old, response) == []
    assert member.log.end_offset == 1


def test_an_observer_that_lost_its_leader_asks_the_others() -> None:
    member = Member(5).follow(2)
    asked = []
    now = 0
    for _ in range(3):
        member.hear(2, member.fetch, None, now)
        now += TIMING.retry_backoff_ms
        asked += [sent.to for sent in of(Send, member.tick(now))]
    assert sorted(asked) == [place(1), place(2), place(3)]
    member.hear(-1, member.fetch, FetchResponse(Errors.FENCED_LEADER_EPOCH, 2, 3, place(3)), now)
    assert (member.quorum.leader_id, member.quorum.epoch) == (3, 2)


def test_a_snapshot_is_fetched_in_pieces_made_durable_and_takes_the_place_of_the_log() -> None:
    member = Member(1, epochs=(1,)).follow(2, epoch=3)
    wanted = a_snapshot(8, 2)
    ((_, request),) = requests(member.fetched(from_leader(member, epoch=3, snapshot=wanted)))
    assert request == FetchSnapshotRequest(key(1), 3, wanted, 0, TIMING.snapshot_max_bytes)

    def piece(position: int, data: bytes) -> FetchSnapshotResponse:
        return FetchSnapshotResponse(Errors.NONE, 3, 2, place(2), wanted, 30, position, data)

    effects = member.hear(2, request, piece(0, bytes(20)))
    assert of(StoreSnapshot, effects) == [StoreSnapshot(wanted, 0, bytes(20), False)]
    ((_, request),) = requests(effects)
    assert isinstance(request, FetchSnapshotRequest)
    assert request.position == 20
    effects = member.hear(2, request, piece(20, bytes(10)))
    assert effects == [StoreSnapshot(wanted, 20, bytes(10), True)]  # and nothing is asked until it is durable
    effects = member.carry_out(member.quorum.snapshot_stored(wanted, 5), 5)
    assert effects[0] == InstallSnapshot(wanted)
    assert Advance(8) in effects
    assert (member.fetch.offset, member.fetch.last_epoch) == (8, 2)


def test_a_snapshot_that_is_gone_is_asked_for_anew() -> None:
    member = Member(1).follow(2)
    ((_, request),) = requests(member.fetched(from_leader(member, snapshot=a_snapshot(8, 1))))
    reply = FetchSnapshotResponse(Errors.SNAPSHOT_NOT_FOUND, 1, 2, place(2), a_snapshot(8, 1))
    member.hear(2, request, reply, 10)
    member.tick(10 + TIMING.retry_backoff_ms)
    assert member.fetch.offset == 0


def test_a_snapshot_older_than_the_log_is_not_loaded() -> None:
    member = Member(1, epochs=(1, 1, 1)).follow(2)
    member.fetched(from_leader(member, high_watermark=3))
    member.fetched(from_leader(member, snapshot=a_snapshot(2, 1)), 1)
    assert isinstance(member.quorum.role, Follower)
    assert member.quorum.role.download is None


def test_a_log_that_ends_at_the_leaders_start_in_a_later_epoch_is_truncated_first() -> None:
    """It would find a snapshot of an earlier epoch older than itself, and ask for it again and again."""
    leader = a_leader(1, 1, 3, 3)
    leader.ask(a_fetch(2, 5, epoch=4), 1000)
    leader.log.take_snapshot(2)
    reply = answer(leader.ask(a_fetch(3, 2, epoch=4, last_epoch=2), 1000))
    assert (reply.snapshot, reply.diverging) == (None, EpochEnd(1, 2))


def test_a_snapshot_is_loaded_if_the_own_log_does_not_lead_to_it_even_if_that_is_longer() -> None:
    wanted = a_snapshot(3, 1)
    for own, loaded in (((1, 2, 2, 2), True), ((1, 1, 1, 2), False), ((2, 2, 2), True), ((1, 1), True)):
        member = Member(1, epochs=own).follow(2, epoch=5)
        assert isinstance(member.quorum.role, Follower)
        member.quorum.role.in_flight = None
        member.quorum.role.download = (wanted, -1)
        effects = member.carry_out(member.quorum.snapshot_stored(wanted, 5), 5)
        assert (InstallSnapshot(wanted) in effects) is loaded, own


def test_a_snapshot_is_not_loaded_by_who_no_longer_follows() -> None:
    member = Member(1).follow(2)
    ((_, request),) = requests(member.fetched(from_leader(member, snapshot=a_snapshot(8, 1))))
    member.hear(2, request, FetchSnapshotResponse(Errors.NONE, 1, 2, place(2), a_snapshot(8, 1), 4, 0, bytes(4)))
    member.ask(a_vote_request(3, 2, last=(1, 9)))
    assert isinstance(member.quorum.role, Unattached)
    assert member.quorum.snapshot_stored(a_snapshot(8, 1), 5) == []


def test_after_a_restart_a_snapshot_says_what_is_committed() -> None:
    member = Member(1, epochs=(1, 1, 1))
    member.log.take_snapshot(2)
    restarted = Quorum(member.quorum.local, member.log, election=ElectionState(1), draw=lambda low, high: low, now=0)
    assert restarted.high_watermark == 2
