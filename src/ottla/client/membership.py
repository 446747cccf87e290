"""A member of a group, by the classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup), of whatever type.

What members tell each other (metadata) and get (assignments) are bytes that mean nothing here; the member that leads
assigns by a function it was made with. Answers and time go in, effects come out:

- `Prepare`: a generation is to be formed. The owner puts in order what it must not keep, then calls `ready` with what
  to join with. Heartbeats go on meanwhile, so it has up to the rebalance timeout.
- `Assigned`: the generation is formed, this is this member's part.
- `Lost`: what was assigned is no longer this member's, others may have it already. Said as early as it can be known:
  when the coordinator says so, or was silent for as long as a session lasts, counted from the sending of the last
  heartbeat that it took. So a member that hears nothing gives up before the coordinator gives its part to another.
  For the same reason a part is told (Assigned) only when a first heartbeat has been taken: when the coordinator began
  to count is not known from its answers to joins and syncs, which wait for others and may be late.
- `Failed`: this member can never be in the group as it is (refused, or its instance id has another owner, KIP-345).
- `Left`: the end of `leave`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from ottla.client.errors import KafkaError, known
from ottla.model.errors import Errors
from ottla.protocol.codec import Message
from ottla.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

NO_GENERATION: Final = -1
FIRST_PAUSE_MS: Final = 50
LONGEST_PAUSE_MS: Final = 1000
JOIN_SLACK_MS: Final = 5000
"""A join is answered when the slowest member came or was given up: by then its own answer must have time to travel."""
LEAVE_PATIENCE_MS: Final = 5000
_LEAVE_BY_LIST: Final = 3
_FORGOTTEN: Final = (Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION)


class MemberSettings(NamedTuple):
    group: str
    protocol_type: str
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 3_000
    instance_id: str | None = None
    """A static member (KIP-345): it keeps its part over a restart within the session, so it does not leave either."""


class Peer(NamedTuple):
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


Assignor = Callable[[str, Sequence[Peer]], Mapping[str, bytes]]
"""From the protocol that all agreed on and all members: what each gets, by member id."""


def leave_request(group: str, member_id: str, version: int) -> LeaveGroupRequest:
    if version < _LEAVE_BY_LIST:
        return LeaveGroupRequest(group, member_id)
    return LeaveGroupRequest(group, members=[LeaveGroupRequest.MemberIdentity(member_id)])


class State(Enum):
    NEW = "new"
    PREPARING = "preparing"
    JOINING = "joining"
    SYNCING = "syncing"
    CONFIRMING = "confirming"
    STABLE = "stable"
    LEAVING = "leaving"
    ENDED = "ended"


# Effects.


class Send(NamedTuple):
    """To the group's coordinator; the answer is given to `answered`, the lack of one to `unanswered`, by number."""

    number: int
    kind: type[Message]
    make: Callable[[int], Message]
    response: type[Message]
    patience_ms: int
    find_again: bool
    """The coordinator that is known may not be it any more."""


class Prepare(NamedTuple):
    number: int
    """Given back to `ready`. A later one takes the place of an earlier one."""


class Assigned(NamedTuple):
    member_id: str
    generation: int
    protocol: str
    leader_id: str
    assignment: bytes
    peers: tuple[Peer, ...] = ()
    """Told to the leader only."""

    @property
    def leads(self) -> bool:
        return self.member_id == self.leader_id


class Lost(NamedTuple):
    pass


class Left(NamedTuple):
    pass


class Failed(NamedTuple):
    error: KafkaError


Effect = Send | Prepare | Assigned | Lost | Left | Failed
Effects = list[Effect]


class _Call(NamedTuple):
    number: int
    sent_ms: int


class _Lease(NamedTuple):
    """Until when nobody else can have been given this member's part."""

    until_ms: int
    join_by_ms: int
    """A rebalance that began right behind the last heartbeat goes on without this member then."""


class Membership:
    __slots__ = (
        "_assign", "_beat", "_calls", "_due_ms", "_find_again", "_formed", "_lease", "_main", "_pause_ms", "_protocols",
        "_rejoin", "held", "member_id", "settings", "state",
    )  # fmt: skip

    def __init__(self, settings: MemberSettings, assign: Assignor) -> None:
        self.settings = settings
        self._assign = assign
        self.state = State.NEW
        self.member_id = ""
        self.held: Assigned | None = None
        """This member's part of the last generation, until it is lost or another comes."""
        self._formed = Assigned("", NO_GENERATION, "", "", b"")
        """This member's part of the generation that it joined last, as far as it is known."""
        self._protocols: tuple[tuple[str, bytes], ...] = ()
        self._lease = _Lease(0, 0)
        self._due_ms = 0
        """When the next heartbeat, or the next attempt to join, is sent."""
        self._pause_ms = FIRST_PAUSE_MS
        self._calls = 0
        self._main: _Call | None = None
        """What the state waits for: an answer, or the owner's `ready`."""
        self._beat: _Call | None = None
        self._find_again = False
        self._rejoin = False

    # What the owner does.

    def start(self, now_ms: int) -> Effects:
        assert self.state is State.NEW
        return [self._prepare(now_ms)]

    def ready(self, number: int, protocols: Sequence[tuple[str, bytes]], now_ms: int) -> Effects:
        """In the order of preference: name and what this member says of itself."""
        if self._main is None or number != self._main.number:
            return []  # what was held got lost while the owner prepared, or the end came
        assert self.state is State.PREPARING
        self._protocols = tuple(protocols)
        return self._join(now_ms)

    def rejoin(self, now_ms: int) -> Effects:
        """What this member says of itself has changed: a new generation is asked for."""
        if self.state is State.STABLE:
            return [self._prepare(now_ms)]
        # While the owner prepares it may have looked already at what has changed now.
        self._rejoin = self.state in (State.PREPARING, State.JOINING, State.SYNCING, State.CONFIRMING)
        return []

    def leave(self, now_ms: int) -> Effects:
        """Ends it, whatever goes on; the owner has given its part up before. A static member just goes: its part waits
        for its return."""
        if self.state in (State.LEAVING, State.ENDED):
            return []
        self.held = None
        self._beat = None
        self._main = None
        if not self.member_id or self.settings.instance_id is not None:
            self.state = State.ENDED
            return [Left()]
        self.state = State.LEAVING
        self._due_ms = now_ms + LEAVE_PATIENCE_MS
        return [self._send_main(LeaveGroupRequest, self._leave_request, LeaveGroupResponse, LEAVE_PATIENCE_MS, now_ms)]

    # Time.

    def next_tick_ms(self) -> int | None:
        """When `tick` has something to do; None: not before an answer, or the owner, is heard."""
        times: list[int] = []
        if self.state is State.LEAVING or self._joins or self._beats:
            times.append(self._due_ms)
        if self._leased:
            times.append(self._lease.until_ms)
        return min(times, default=None)

    def tick(self, now_ms: int) -> Effects:
        if self._leased and now_ms >= self._lease.until_ms:
            return self._lose(now_ms)
        if now_ms < self._due_ms:
            return []
        if self.state is State.LEAVING:
            return self._end(Left())
        if self._joins:
            return self._join(now_ms)
        return [self._send_beat(now_ms)] if self._beats else []

    @property
    def _joins(self) -> bool:
        return self.state is State.JOINING and self._main is None

    @property
    def _beats(self) -> bool:
        return self._leased and self._beat is None

    @property
    def _leased(self) -> bool:
        """While joining, nobody can tell how long the part is kept: the protocol's own rules must guard it then."""
        return self.held is not None and self.state in (State.STABLE, State.PREPARING)

    # Answers.

    def answered(self, number: int, response: Message, now_ms: int) -> Effects:
        if self._beat is not None and number == self._beat.number:
            sent, self._beat = self._beat, None
            assert isinstance(response, HeartbeatResponse)
            return self._heartbeat(known(response.error_code), sent.sent_ms, now_ms)
        if self._main is None or number != self._main.number:
            return []  # of a request that nobody waits for any more
        sent, self._main = self._main, None
        if isinstance(response, JoinGroupResponse):
            return self._join_answered(response, now_ms)
        if isinstance(response, SyncGroupResponse):
            return self._sync_answered(response, now_ms)
        if isinstance(response, HeartbeatResponse):
            return self._confirmed(known(response.error_code), sent.sent_ms, now_ms)
        assert isinstance(response, LeaveGroupResponse)
        return self._end(Left())

    def unanswered(self, number: int, now_ms: int) -> Effects:
        """The connection broke, or nobody answered in time."""
        if self._beat is not None and number == self._beat.number:
            self._beat = None
            return self._trouble(now_ms, find_again=True)
        if self._main is None or number != self._main.number:
            return []
        self._main = None
        if self.state is State.LEAVING:
            return self._end(Left())  # the session's end does the rest
        self.state = State.JOINING
        return self._trouble(now_ms, find_again=True)

    def refused(self, error: KafkaError) -> Effects:
        """The owner found out that it cannot go on: the coordinator may not be asked for, an API is not there."""
        return self._fail(error)

    def _join_answered(self, response: JoinGroupResponse, now_ms: int) -> Effects:
        error = known(response.error_code)
        if error == Errors.MEMBER_ID_REQUIRED:  # KIP-394
            self.member_id = response.member_id
            return self._join(now_ms)
        if error != Errors.NONE:
            return self._join_refused(error, now_ms)
        self.member_id = response.member_id
        peers = _peers(response) if response.leader == response.member_id else ()
        protocol = response.protocol_name or ""
        self._formed = Assigned(self.member_id, response.generation_id, protocol, response.leader, b"", peers)
        self._pause_ms = FIRST_PAUSE_MS
        self.state = State.SYNCING
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = []
        if self._formed.leads and not response.skip_assignment:  # KIP-814
            given = self._assign(protocol, peers)
            assignments = [SyncGroupRequest.SyncGroupRequestAssignment(member, part) for member, part in given.items()]
        request = SyncGroupRequest(
            self.settings.group,
            response.generation_id,
            self.member_id,
            self.settings.instance_id,
            self.settings.protocol_type,
            response.protocol_name,
            assignments,
        )
        patience_ms = self.settings.rebalance_timeout_ms + JOIN_SLACK_MS
        return [self._send_main(SyncGroupRequest, lambda _: request, SyncGroupResponse, patience_ms, now_ms)]

    def _join_refused(self, error: Errors, now_ms: int) -> Effects:
        if error == Errors.UNKNOWN_MEMBER_ID:
            return self._forgotten(error, now_ms)
        if error.retriable or error == Errors.REBALANCE_IN_PROGRESS:
            return self._trouble(now_ms, find_again=error != Errors.COORDINATOR_LOAD_IN_PROGRESS)
        return self._fail(KafkaError(error, f"group {self.settings.group}"))

    def _sync_answered(self, response: SyncGroupResponse, now_ms: int) -> Effects:
        error = known(response.error_code)
        if error != Errors.NONE:
            return self._formed_without(error, now_ms)
        self.state = State.CONFIRMING
        self._main = _Call(self._calls, now_ms)
        self._formed = self._formed._replace(assignment=bytes(response.assignment))
        return [self._send_heartbeat()]

    def _confirmed(self, error: Errors, sent_ms: int, now_ms: int) -> Effects:
        if error != Errors.NONE:
            return self._formed_without(error, now_ms)
        self.held = self._formed
        self.state = State.STABLE
        self._alive(sent_ms)
        effects: Effects = [self.held]
        if self._rejoin:
            self._rejoin = False
            effects += self.rejoin(now_ms)
        return effects

    def _formed_without(self, error: Errors, now_ms: int) -> Effects:
        """The generation that was joined is over before this member has begun with it."""
        self.state = State.JOINING
        if error == Errors.REBALANCE_IN_PROGRESS:
            return self._join(now_ms)
        if error in _FORGOTTEN:
            return self._forgotten(error, now_ms)
        if error.retriable:
            return self._trouble(now_ms, find_again=error != Errors.COORDINATOR_LOAD_IN_PROGRESS)
        return self._fail(KafkaError(error, f"group {self.settings.group}"))

    def _heartbeat(self, error: Errors, sent_ms: int, now_ms: int) -> Effects:
        if error == Errors.NONE:
            self._alive(sent_ms)
            return []
        if error == Errors.REBALANCE_IN_PROGRESS:
            self._alive(sent_ms, join_by_ms=self._lease.join_by_ms)
            return [] if self.state is State.PREPARING else [self._prepare(now_ms)]
        if error in _FORGOTTEN:
            self._forget(error)
            return self._lose(now_ms)
        if error.retriable:
            return self._trouble(now_ms, find_again=error != Errors.COORDINATOR_LOAD_IN_PROGRESS)
        return self._fail(KafkaError(error, f"group {self.settings.group}"))

    def _alive(self, sent_ms: int, join_by_ms: int | None = None) -> None:
        """The coordinator took a heartbeat."""
        if join_by_ms is None:
            join_by_ms = sent_ms + self.settings.rebalance_timeout_ms
        self._lease = _Lease(min(sent_ms + self.settings.session_timeout_ms, join_by_ms), join_by_ms)
        self._due_ms = sent_ms + self.settings.heartbeat_interval_ms
        self._pause_ms = FIRST_PAUSE_MS

    # Changes of state.

    def _forget(self, error: Errors) -> None:
        if error == Errors.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def _forgotten(self, error: Errors, now_ms: int) -> Effects:
        """Told so while joining: what was held from before is gone, and what was to be joined with may speak of it."""
        self._forget(error)
        return self._lose(now_ms) if self.held is not None else self._join(now_ms)

    def _prepare(self, now_ms: int) -> Prepare:
        self.state = State.PREPARING
        self._rejoin = False  # the owner is asked now
        self._main = _Call(self._calls, now_ms)
        self._calls += 1
        return Prepare(self._main.number)

    def _lose(self, now_ms: int) -> Effects:
        self.held = None
        self._beat = None
        return [Lost(), self._prepare(now_ms)]

    def _trouble(self, now_ms: int, *, find_again: bool) -> Effects:
        self._find_again = self._find_again or find_again
        self._due_ms = now_ms + self._pause_ms
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)
        return []

    def _fail(self, error: KafkaError) -> Effects:
        lost: Effects = [Lost()] if self.held is not None else []
        return [*lost, *self._end(Failed(error))]

    def _end(self, effect: Effect) -> Effects:
        self.state = State.ENDED
        self.held = self._main = self._beat = None
        return [effect]

    # Requests.

    def _join(self, now_ms: int) -> Effects:
        self.state = State.JOINING
        self._beat = None
        settings = self.settings
        request = JoinGroupRequest(
            settings.group,
            settings.session_timeout_ms,
            settings.rebalance_timeout_ms,
            self.member_id,
            settings.instance_id,
            settings.protocol_type,
            [JoinGroupRequest.JoinGroupRequestProtocol(name, metadata) for name, metadata in self._protocols],
        )
        patience_ms = settings.rebalance_timeout_ms + JOIN_SLACK_MS
        return [self._send_main(JoinGroupRequest, lambda _: request, JoinGroupResponse, patience_ms, now_ms)]

    def _leave_request(self, version: int) -> Message:
        return leave_request(self.settings.group, self.member_id, version)

    def _send_main(
        self,
        kind: type[Message],
        make: Callable[[int], Message],
        response: type[Message],
        patience_ms: int,
        now_ms: int,
    ) -> Send:
        self._main = _Call(self._calls, now_ms)
        return self._send(kind, make, response, patience_ms)

    def _send_beat(self, now_ms: int) -> Send:
        self._beat = _Call(self._calls, now_ms)
        return self._send_heartbeat()

    def _send_heartbeat(self) -> Send:
        settings = self.settings
        request = HeartbeatRequest(settings.group, self._formed.generation, self.member_id, settings.instance_id)
        patience_ms = max(settings.heartbeat_interval_ms, settings.session_timeout_ms // 3)
        return self._send(HeartbeatRequest, lambda _: request, HeartbeatResponse, patience_ms)

    def _send(
        self, kind: type[Message], make: Callable[[int], Message], response: type[Message], patience_ms: int
    ) -> Send:
        sent = Send(self._calls, kind, make, response, patience_ms, self._find_again)
        self._calls += 1
        self._find_again = False
        return sent


def _peers(joined: JoinGroupResponse) -> tuple[Peer, ...]:
    return tuple(Peer(member.member_id, member.group_instance_id, bytes(member.metadata)) for member in joined.members)
