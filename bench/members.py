"""A group of members that do nothing but be members: how long it takes until all of them know what is theirs.

Run as a process of its own (`python -m bench.members PORT TOPIC PARTITIONS MEMBERS CHANGES PROTOCOL GROUP`): forms a
group, then CHANGES times one more member comes and leaves again, and prints the seconds of each as JSON. Members act
as Kafka's consumers do, on one connection each and one request at a time, but heartbeat ten times a second: a client's
own interval, three or five seconds as a rule, is not the server's time.
"""

import json
import selectors
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from bench import wire
from ottla.model.errors import Errors
from ottla.protocol import messages as m
from ottla.protocol.apis import API
from ottla.protocol.codec import Message
from ottla.protocol.frames import RequestHeader, decode_response_header, encode_request

HEARTBEAT_SECONDS = 0.1
TIMEOUT_MS = 45_000
PATIENCE_SECONDS = 60.0
REST_SECONDS = 1.2
"""Between two changes: a group that was assigned within the last second waits before it is assigned anew (KIP-1263)."""
NOT_YET = {Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS}
Assigned = dict[Any, list[int]]
"""Partitions by topic: its id in one protocol, its name in the other."""


class Refused(RuntimeError):
    """The server answered as it should not."""


class Member(ABC):
    """One connection. `advance` reads the answer to what was sent and may send again; `beat` is called when idle."""

    versions: ClassVar[dict[int, int]]

    def __init__(self, port: int, group: str, topic: str, partitions: int) -> None:
        self.connection = wire.Connection(port)
        self.group, self.topic, self.partitions = group, topic, partitions
        self.member_id = ""
        self.stage = 0
        """Generation or member epoch: equal for all in a group that has come to rest."""
        self.owned: Assigned = {}
        self.asked: int | None = None
        """The API of the request in flight."""
        self.due = 0.0

    @property
    def load(self) -> int:
        return sum(map(len, self.owned.values()))

    def send(self, request: Message) -> None:
        self.asked = request.API_KEY
        header = RequestHeader(request.API_KEY, self.versions[request.API_KEY], 1, "bench")
        self.connection.socket.sendall(encode_request(header, request))

    def advance(self) -> None:
        if self.asked is None:
            raise Refused("an answer to nothing")
        key, version = self.asked, self.versions[self.asked]
        # The frame that the decoder takes begins with the correlation id.
        frame = bytes(4) + self.connection.receive()
        _, pos = decode_response_header(frame, key, version)
        response, _ = m.response_class(key).DECODERS[version](frame, pos)
        self.asked = None
        self.due = time.monotonic() + HEARTBEAT_SECONDS
        if response.error_code not in NOT_YET:
            self.take(key, response)

    @abstractmethod
    def beat(self) -> None: ...

    @abstractmethod
    def take(self, key: int, response: Any) -> None: ...

    @abstractmethod
    def leave(self) -> None: ...

    @property
    @abstractmethod
    def is_at_rest(self) -> bool: ...


class ConsumerMember(Member):
    """KIP-848: lets go of what it is told to at once, and says so at once."""

    versions: ClassVar = {68: 1}

    def __init__(self, port: int, group: str, topic: str, partitions: int) -> None:
        super().__init__(port, group, topic, partitions)
        self.member_id = str(uuid.uuid4())  # chosen by the member itself (KIP-1082)

    @property
    def is_at_rest(self) -> bool:
        return self.stage > 0

    def beat(self) -> None:
        request = self.heartbeat(self.stage)
        if self.stage == 0:
            request.rebalance_timeout_ms = TIMEOUT_MS
            request.subscribed_topic_names = [self.topic]
            request.topic_partitions = []
        self.send(request)

    def heartbeat(self, epoch: int) -> m.ConsumerGroupHeartbeatRequest:
        return m.ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=epoch)

    def take(self, key: int, response: Any) -> None:
        if response.error_code:
            raise Refused(f"ConsumerGroupHeartbeat: {response}")
        self.stage = response.member_epoch
        if response.assignment is None:
            return
        told: Assigned = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
        if told != self.owned:
            self.owned = told
            request = self.heartbeat(self.stage)
            kind = m.ConsumerGroupHeartbeatRequest.TopicPartitions
            request.topic_partitions = [kind(topic_id=topic, partitions=mine) for topic, mine in told.items()]
            self.send(request)

    def leave(self) -> None:
        self.send(self.heartbeat(-1))


class ClassicMember(Member):
    """Join, sync, heartbeat; joins again when a heartbeat says so. The leader deals the partitions out in order."""

    versions: ClassVar = {11: 9, 12: 4, 13: 5, 14: 5}
    is_stable = False

    @property
    def is_at_rest(self) -> bool:
        return self.is_stable

    def beat(self) -> None:
        if not self.is_stable:
            self.join()
            return
        self.send(m.HeartbeatRequest(group_id=self.group, member_id=self.member_id, generation_id=self.stage))

    def join(self) -> None:
        self.is_stable = False
        metadata = b"\0\0" + m.ConsumerProtocolSubscription(topics=[self.topic]).encode(0)
        self.send(
            m.JoinGroupRequest(
                group_id=self.group,
                member_id=self.member_id,
                session_timeout_ms=TIMEOUT_MS,
                rebalance_timeout_ms=TIMEOUT_MS,
                protocol_type="consumer",
                protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
            )
        )

    def take(self, key: int, response: Any) -> None:
        error = response.error_code
        if error == Errors.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.join()
        elif error in {Errors.REBALANCE_IN_PROGRESS, Errors.ILLEGAL_GENERATION}:
            self.join()
        elif error:
            raise Refused(f"{API[key].name}: {response}")
        elif key == m.JoinGroupRequest.API_KEY:
            self.member_id, self.stage = response.member_id, response.generation_id
            self.sync([member.member_id for member in response.members] if response.leader == self.member_id else [])
        elif key == m.SyncGroupRequest.API_KEY:
            found = m.ConsumerProtocolAssignment.decode(response.assignment, 0, 2)
            self.owned = {topic.topic: topic.partitions for topic in found.assigned_partitions}
            self.is_stable = True

    def sync(self, members: Sequence[str]) -> None:
        kind = m.SyncGroupRequest.SyncGroupRequestAssignment
        dealt = [
            kind(member_id=member, assignment=self.assignment(range(index, self.partitions, len(members))))
            for index, member in enumerate(members)
        ]
        self.send(
            m.SyncGroupRequest(
                group_id=self.group,
                member_id=self.member_id,
                generation_id=self.stage,
                protocol_type="consumer",
                protocol_name="range",
                assignments=dealt,
            )
        )

    def assignment(self, partitions: Sequence[int]) -> bytes:
        kind = m.ConsumerProtocolAssignment
        mine = kind.TopicPartition(topic=self.topic, partitions=list(partitions))
        return b"\0\0" + kind(assigned_partitions=[mine]).encode(0)

    def leave(self) -> None:
        gone = m.LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        self.send(m.LeaveGroupRequest(group_id=self.group, members=[gone]))


class Group:
    """The members, one thread for all."""

    def __init__(self, make: Callable[[], Member], partitions: int) -> None:
        self.make = make
        self.partitions = partitions
        self.members: list[Member] = []
        self.selector = selectors.DefaultSelector()

    def add(self) -> Member:
        member = self.make()
        self.members.append(member)
        self.selector.register(member.connection.socket, selectors.EVENT_READ, member)
        return member

    def turn(self) -> None:
        now = time.monotonic()
        for member in self.members:
            if member.asked is None and member.due <= now:
                member.beat()
        due = min((member.due for member in self.members if member.asked is None), default=now + HEARTBEAT_SECONDS)
        for key, _ in self.selector.select(max(0.0, due - time.monotonic())):
            key.data.advance()

    def settle(self, after: int = 0) -> float:
        """Seconds until every partition is somebody's, by fair shares, and all are at one stage beyond `after`."""
        began = time.monotonic()
        while not self.is_settled(after):
            self.turn()
            if time.monotonic() > began + PATIENCE_SECONDS:
                raise Refused(f"the group does not settle: {[(one.stage, one.load) for one in self.members]}")
        return time.monotonic() - began

    def is_settled(self, after: int) -> bool:
        stages = {member.stage for member in self.members}
        if len(stages) != 1 or min(stages) <= after or not all(member.is_at_rest for member in self.members):
            return False
        loads = [member.load for member in self.members]
        taken = {(topic, one) for member in self.members for topic, mine in member.owned.items() for one in mine}
        return sum(loads) == len(taken) == self.partitions and max(loads) - min(loads) <= 1

    def rest(self) -> int:
        """Returns the stage at which the group is."""
        end = time.monotonic() + REST_SECONDS
        while time.monotonic() < end:
            self.turn()
        self.settle()
        return self.members[0].stage

    def comes(self) -> float:
        stage = self.rest()
        self.add()
        return self.settle(stage)

    def leaves(self) -> float:
        """The one that came last; the clock starts when it says so."""
        stage = self.rest()
        gone = self.members[-1]
        while gone.asked is not None:
            self.turn()
        self.members.pop()
        self.selector.unregister(gone.connection.socket)
        gone.leave()
        seconds = self.settle(stage)
        gone.connection.receive()
        gone.connection.socket.close()
        return seconds


def main() -> None:
    port, topic, partitions, members, changes = int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6])
    kind = {"classic": ClassicMember, "consumer": ConsumerMember}[sys.argv[6]]
    group_id = sys.argv[7]
    group = Group(lambda: kind(port, group_id, topic, partitions), partitions)
    for _ in range(members):
        group.add()
    cpu, began = time.process_time(), time.monotonic()
    formed = group.settle()
    comes, leaves = [], []
    for _ in range(changes):
        comes.append(group.comes())
        leaves.append(group.leaves())
    share = (time.process_time() - cpu) / (time.monotonic() - began)
    print(json.dumps({"formed": formed, "comes": comes, "leaves": leaves, "client_share": share}))


if __name__ == "__main__":
    main()
