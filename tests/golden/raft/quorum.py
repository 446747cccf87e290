"""Several members of a quorum, and every word between them, written down."""

from typing import Any

from ottla.model.errors import Errors
from ottla.raft.exchange import (
    Advance,
    Append,
    AppendControl,
    Effect,
    FetchResponse,
    FetchSnapshotResponse,
    InstallSnapshot,
    Persist,
    Reply,
    Send,
    StoreSnapshot,
    Truncate,
    VersionsRequest,
    VersionsResponse,
)
from ottla.raft.voters import ReplicaKey, Voter
from tests.rules.raft.scene import Member

_LEFT_OUT = ("to", "endpoints", "max_wait_ms", "max_bytes", "voter", "voted_directory_id", "token")
"""Fields that say nothing in a story."""


class Story:
    """Time is what `at` said last. A message is heard when `deliver` lets it through."""

    def __init__(self, members: dict[int, Member]) -> None:
        self.members = members
        self.now = 0
        self.lines: list[str] = []
        self._asked: list[tuple[int, int, Any]] = []
        self._answered: list[tuple[int, int, Any, Any]] = []
        self._cut_off: set[int] = set()

    # ---- what a story is made of

    def say(self, *text: str) -> None:
        self.lines += ["", *(f"# {line}" for line in text)]

    def at(self, now: int) -> None:
        """Everybody whose time has come acts."""
        self.now = now
        for node_id in sorted(self.members):
            member = self.members[node_id]
            if node_id not in self._cut_off and member.quorum.deadline() <= now:
                self._note(node_id, f"{now} ms", member.tick(now))

    def append(self, node_id: int, value: int) -> None:
        """A record of the leader's controller, flushed at once."""
        member = self.members[node_id]
        self._note(node_id, f"appends {value}", [*member.append(value, self.now), *member.flush(self.now)])

    def request(self, node_id: int, request: Any) -> None:
        """From somebody outside of the quorum."""
        self.lines.append(f"  ? -> {node_id}  {_shown(request)}")
        self._effects(node_id, self.members[node_id].ask(request, self.now, ("?", request)))

    def cut_off(self, *nodes: int) -> None:
        """Nothing goes in or out; what is under way is lost, and whoever waits for it is told."""
        self._cut_off |= set(nodes)
        self.deliver()

    def heal(self) -> None:
        self._cut_off.clear()

    def deliver(self, most: int = 200) -> None:
        """Everything under way, and whatever comes of it, until nobody has more to say."""
        for _ in range(most):
            if self._answered:
                sender, receiver, request, response = self._answered.pop(0)
                self._answer(sender, receiver, request, response)
            elif self._asked:
                self._ask(*self._asked.pop(0))
            else:
                return
        raise AssertionError("they do not stop talking")

    def roles(self) -> None:
        for node_id, member in sorted(self.members.items()):
            quorum = member.quorum
            log = " ".join(str(member.log.entry(at)[0]) for at in range(member.log.start_offset, member.log.end_offset))
            known = f"epoch {quorum.epoch} high watermark {quorum.high_watermark}"
            self.lines.append(f"  = {node_id}: {type(quorum.role).__name__} {known} log [{log}]")

    # ---- carrying it out

    def _note(self, node_id: int, what: str, effects: list[Effect]) -> None:
        self.lines.append(f"{node_id}: {what}")
        self._effects(node_id, effects)

    def _ask(self, sender: int, receiver: int, request: Any) -> None:
        if {sender, receiver} & self._cut_off:
            self.lines.append(f"  {sender} -x {receiver}  {_shown(request)}")
            if sender not in self._cut_off:
                self._effects(sender, self.members[sender].hear(receiver, request, None, self.now))
            return
        self.lines.append(f"  {sender} -> {receiver}  {_shown(request)}")
        if isinstance(request, VersionsRequest):  # ApiVersions: the receiver's driver answers
            self._answered.append((receiver, sender, request, VersionsResponse(Errors.NONE, kraft_versions=(0, 1))))
            return
        self._effects(receiver, self.members[receiver].ask(request, self.now, (sender, request)))

    def _answer(self, sender: int, receiver: int, request: Any, response: Any) -> None:
        if {sender, receiver} & self._cut_off:
            self.lines.append(f"  {sender} -x {receiver}  {_shown(response)}")
            response = None
            if receiver in self._cut_off:
                return
        else:
            self.lines.append(f"  {sender} -> {receiver}  {_shown(response)}")
        if receiver in self.members:
            self._effects(receiver, self.members[receiver].hear(sender, request, response, self.now))

    def _effects(self, node_id: int, effects: list[Effect]) -> None:
        flushed = False
        for effect in effects:
            match effect:
                case Send(node_id=receiver, request=request):
                    self._asked.append((node_id, self._receiver(effect) if receiver < 0 else receiver, request))
                case Reply(token=(str() | int() as sender, request), response=response):
                    if sender == "?":
                        self.lines.append(f"  {node_id} -> ?  {_shown(response)}")
                    else:
                        self._answered.append((node_id, int(sender), request, self._filled(node_id, effect)))
                case Persist(state=state):
                    self.lines.append(f"    {node_id} writes down {_shown(state)}")
                case Advance(offset=offset):
                    self.lines.append(f"    {node_id} knows that all below {offset} is committed")
                case AppendControl(epoch=epoch, records=records):
                    names = ", ".join(type(record).__name__ for record in records)
                    self.lines.append(f"    {node_id} appends {names} of epoch {epoch}")
                    flushed = True
                case Append(records=records):
                    self.lines.append(f"    {node_id} appends {_records(records)}")
                    flushed = True
                case Truncate(offset=offset):
                    self.lines.append(f"    {node_id} cuts its log back to {offset}")
                case InstallSnapshot(id=id_):
                    self.lines.append(f"    {node_id} begins its log anew behind snapshot {_shown(id_)}")
                case StoreSnapshot(id=id_, is_last=is_last):
                    self.lines.append(f"    {node_id} stores {'the last' if is_last else 'a'} piece of {_shown(id_)}")
                    if is_last:
                        self._effects(node_id, self._stored(node_id, id_))
        if flushed:
            self._effects(node_id, self.members[node_id].flush(self.now))

    def _stored(self, node_id: int, snapshot: Any) -> list[Effect]:
        member = self.members[node_id]
        return member.carry_out(member.quorum.snapshot_stored(snapshot, self.now), self.now)

    def _receiver(self, effect: Send) -> int:
        return effect.to[0].port - 9000

    def _filled(self, node_id: int, reply: Reply) -> Any:
        """As the driver does: records and pieces of snapshots are read when the answer leaves."""
        response = reply.response
        if reply.read_from >= 0 and isinstance(response, FetchResponse):
            return response._replace(records=self.members[node_id].log.read(reply.read_from, 100))
        if reply.read_from >= 0 and isinstance(response, FetchSnapshotResponse):
            return response._replace(data=b"." * response.size)
        return response


def _records(records: Any) -> str:
    offset, entries = records
    return ", ".join(f"{offset + n} of epoch {entry[0]}" for n, entry in enumerate(entries)) or "nothing"


def _shown(value: Any) -> str:
    if isinstance(value, Voter | ReplicaKey):
        return str(value.id)
    if hasattr(value, "_fields"):
        defaults = getattr(value, "_field_defaults", {})
        told = [
            f"{name}={_records(content) if name == 'records' else _shown(content)}"
            for name, content in zip(value._fields, value, strict=True)
            if name not in _LEFT_OUT
            and content not in (None, b"", Errors.NONE)
            and defaults.get(name, _shown) != content
        ]
        return f"{type(value).__name__}({' '.join(told)})"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, tuple):
        return "[" + " ".join(map(_shown, value)) + "]"
    return value.name if hasattr(value, "name") else str(value)
