"""The simulated cluster with ACLs that change under way: nobody is allowed what no committed set of them allows.

Alice writes, looks and changes a setting, again and again, of whichever node; an administrator gives and takes her
rights one at a time. Who is who the network tells, as certificates would. What was committed is read from the metadata
log when all is over; a node that lags behind decides by what it knows (as Kafka's do), but never by less than it knew
before, also in an earlier life; what the controller decides, it decides by all that was committed when it was asked.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from ottla.metadata.acls import acl_of
from ottla.model.acls import EVERYBODY, WILDCARD, Acl, Pattern, PermissionType
from ottla.model.errors import Errors
from ottla.model.permissions import Operation, Resource
from ottla.protocol import messages
from ottla.protocol.batch import CONTROL, read_header
from ottla.protocol.frames import decode_metadata_record
from ottla.protocol.records import NewRecord, build_batch, read_records
from ottla.testing.checkers import AllowedByCommitted, CommittedAcls, Granted, Question, allows
from ottla.testing.sim import cluster
from ottla.testing.sim.clients import Reader, Routing
from ottla.testing.sim.loop import Life
from ottla.testing.sim.network import SimPeers
from ottla.testing.sim.world import Machine

GUARDED: Final = "guarded"
ALICE: Final = "User:alice"
HOST: Final = "127.0.0.1"
_LOG: Final = "/data/__cluster_metadata-0"
_TOPIC, _PREFIXED = Resource.TOPIC, Pattern.PREFIXED
_ALLOW, _DENY = PermissionType.ALLOW, PermissionType.DENY
_RIGHTS: Final = (
    Acl(_TOPIC, GUARDED, Pattern.LITERAL, ALICE, WILDCARD, Operation.WRITE, _ALLOW),
    Acl(_TOPIC, GUARDED, Pattern.LITERAL, ALICE, HOST, Operation.ALTER_CONFIGS, _ALLOW),
    Acl(_TOPIC, "guar", _PREFIXED, EVERYBODY, WILDCARD, Operation.READ, _ALLOW),
    Acl(_TOPIC, "g", _PREFIXED, ALICE, WILDCARD, Operation.ALL, _ALLOW),
    Acl(_TOPIC, WILDCARD, Pattern.LITERAL, EVERYBODY, WILDCARD, Operation.ALTER_CONFIGS, _DENY),
    Acl(_TOPIC, GUARDED, Pattern.LITERAL, ALICE, WILDCARD, Operation.ALL, _DENY),
)
_REFUSED: Final = Errors.TOPIC_AUTHORIZATION_FAILED


class Guarded(cluster.Simulation):
    topics: ClassVar[Mapping[str, int]] = {**cluster.Simulation.topics, GUARDED: 1}
    more_settings: ClassVar[Mapping[str, str]] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(["User:clients", *(f"User:node-{node_id}" for node_id in cluster.NODES)]),
    }

    def __init__(self, seed: int, fault_seconds: float) -> None:
        super().__init__(seed, fault_seconds)
        self.report.simulation = "guarded"
        self._alice = Life("alice")
        self._granted: list[Granted] = []
        self._refused = 0
        self._ending = False

    def close(self) -> None:
        self._alice.end()
        super().close()

    def _others(self) -> Sequence[Coroutine[None, None, None]]:
        return [self._administer(), *(self._ask(number) for number in range(3))]

    def _end_others(self) -> None:
        self._ending = True

    # ---- who gives and takes

    async def _administer(self) -> None:
        given: dict[Acl, None] = {}
        while not self._ending:
            acl = self._dice.choice(_RIGHTS)
            if await self._changed(acl, give=acl not in given):
                given.pop(acl) if acl in given else given.setdefault(acl)
            await asyncio.sleep(self._dice.uniform(0.05, 0.6))

    async def _changed(self, acl: Acl, *, give: bool) -> bool:
        create, delete = messages.CreateAclsRequest, messages.DeleteAclsRequest
        routing, to = self._routing(GUARDED), self._any().address
        if give:
            made = await routing.ask(to, create([create.AclCreation(*acl)]))
            return made is not None and not made.results[0].error_code
        gone = await routing.ask(to, delete([delete.DeleteAclsFilter(*acl)]))
        return gone is not None and not gone.filter_results[0].error_code

    # ---- who asks

    def _in_her_name(self, client_id: str) -> Routing:
        return Routing(SimPeers(self._network, self._alice, client_id), (), GUARDED, self._dice)

    def _any(self) -> Machine:
        return self._machines[self._dice.choice(cluster.NODES)]

    async def _ask(self, number: int) -> None:
        routing, alice = self._routing(GUARDED), self._in_her_name(f"alice-{number}")
        while not self._ending:
            await routing.refresh()
            machine, wanted, by_controller = self._any(), Operation.DESCRIBE, False
            chosen = self._dice.randrange(3)
            if chosen == 0 and 0 in routing.leaders:
                address = routing.leaders[0][0]
                machine = next(each for each in self._machines.values() if each.address == address)
                wanted = Operation.WRITE
            elif chosen == 1:
                wanted, by_controller = Operation.ALTER_CONFIGS, True
            since = self._furthest() if by_controller else machine.furthest
            error = await _asked(alice, machine, wanted, routing.topic_id, self._dice.randrange(10_000, 20_000))
            self._note(error, Granted(_question(wanted), machine.name, since, self._furthest()))
            await asyncio.sleep(self._dice.uniform(0.01, 0.2))

    def _furthest(self) -> int:
        return max(machine.furthest for machine in self._machines.values())

    def _note(self, error: Errors | None, granted: Granted) -> None:
        if error is Errors.NONE:
            self._granted.append(granted)
        elif error is _REFUSED:
            self._refused += 1

    # ---- peace

    async def _converge(self, readers: list[Reader]) -> None:
        await super()._converge(readers)
        self._ending = True
        await asyncio.sleep(2.0)  # of the simulation: what was under way is answered, or given up
        alice = self._in_her_name("alice-last")
        *_, last = self._committed()
        expected = Errors.NONE if allows(last.acls, _question(Operation.DESCRIBE)) else _REFUSED
        for machine in self._machines.values():
            error = await _asked(alice, machine, Operation.DESCRIBE, b"", 0)
            if error is not expected:
                self.report.problems.append(f"{machine.name} says {error!r} when all is quiet, not {expected.name}")

    def _judge(self) -> None:
        super()._judge()
        self.report.answers = {"allowed": len(self._granted), "refused": self._refused}
        self.report.problems += map(str, AllowedByCommitted().find(self._granted, list(self._committed())))

    def _committed(self) -> Iterator[CommittedAcls]:
        """After each record of the metadata log that changes an entry, as the node has it that has most of it."""
        machine = max(self._machines.values(), key=lambda each: each.furthest)
        acls: dict[bytes, Acl] = {}
        yield CommittedAcls(-1, frozenset())
        for offset, record in _metadata_records(machine):
            if offset > machine.furthest:
                return
            if isinstance(record, messages.AccessControlEntryRecord):
                acls[record.id] = acl_of(record)
            elif isinstance(record, messages.RemoveAccessControlEntryRecord):
                acls.pop(record.id, None)
            else:
                continue
            yield CommittedAcls(offset, frozenset(acls.values()))


def _question(operation: Operation) -> Question:
    return Question(ALICE, HOST, operation, Resource.TOPIC, GUARDED)


async def _asked(alice: Routing, machine: Machine, operation: Operation, topic_id: bytes, value: int) -> Errors | None:
    """The answer to what needs this; None if there is none."""
    if operation is Operation.WRITE:
        produce = messages.ProduceRequest
        batch = build_batch([NewRecord(None, b"%d" % value, 1)])
        part = produce.TopicProduceData(topic_id=topic_id, partition_data=[produce.PartitionProduceData(0, batch)])
        written = await alice.ask(machine.address, produce(acks=1, timeout_ms=1000, topic_data=[part]))
        return None if written is None else Errors(written.responses[0].partition_responses[0].error_code)
    if operation is Operation.ALTER_CONFIGS:
        alter = messages.IncrementalAlterConfigsRequest
        change = alter.AlterableConfig("retention.bytes", 0, str(value << 20))
        request = alter([alter.AlterConfigsResource(int(Resource.TOPIC), GUARDED, [change])])
        altered = await alice.ask(machine.address, request)
        return None if altered is None else Errors(altered.responses[0].error_code)
    metadata = messages.MetadataRequest
    topics = [metadata.MetadataRequestTopic(name=GUARDED)]
    described = await alice.ask(machine.address, metadata(topics=topics, allow_auto_topic_creation=False))
    return None if described is None else Errors(described.topics[0].error_code)


def _metadata_records(machine: Machine) -> Iterator[tuple[int, object]]:
    names = sorted(entry.name for entry in machine.disk.list(_LOG) if entry.name.endswith(".log"))
    for name in names:
        data = memoryview(machine.disk.read(f"{_LOG}/{name}"))
        at = 0
        while at < len(data):
            header = read_header(data[at:])
            if not header.attributes & CONTROL:
                for record in read_records(data[at : at + header.size]):
                    assert record.value is not None
                    yield record.offset, decode_metadata_record(record.value)[0]
            at += header.size
