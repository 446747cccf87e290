"""Who votes: the set of controllers, static or written to the log (KIP-853)."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.model.ids import ZERO_UUID, Uuid
from ottla.protocol import messages

SUPPORTED_KRAFT_VERSIONS: Final = (0, 1)


class VoterEndpoint(NamedTuple):
    name: str
    host: str
    port: int


class ReplicaKey(NamedTuple):
    """A member by id and by disk: with another disk it is another member (KIP-853)."""

    id: int
    directory_id: Uuid = ZERO_UUID


class Voter(NamedTuple):
    id: int
    directory_id: Uuid = ZERO_UUID
    """Zero while kraft.version is 0: static voters are known by their id alone."""
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_versions: tuple[int, int] = SUPPORTED_KRAFT_VERSIONS

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)

    def is_played_by(self, member: ReplicaKey) -> bool:
        return self.id == member.id and self.directory_id in (ZERO_UUID, member.directory_id)


class VoterSet(NamedTuple):
    voters: tuple[Voter, ...] = ()

    def find(self, node_id: int) -> Voter | None:
        return next((v for v in self.voters if v.id == node_id), None)

    def has(self, member: ReplicaKey) -> bool:
        voter = self.find(member.id)
        return voter is not None and voter.is_played_by(member)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted(v.id for v in self.voters))

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def updated(self, voter: Voter) -> "VoterSet":
        return VoterSet(tuple(voter if v.id == voter.id else v for v in self.voters))

    def joined_by(self, voter: Voter) -> "VoterSet":
        return VoterSet((*self.voters, voter))

    def without(self, member: ReplicaKey) -> "VoterSet":
        return VoterSet(tuple(v for v in self.voters if v.key != member))


class VotersAt(NamedTuple):
    """Voters and kraft.version as the log has them from `offset` on."""

    offset: int
    voters: VoterSet
    kraft_version: int


class VoterHistory:
    """The voters over the length of a log: the last entry counts, committed or not, and goes when it is truncated."""

    __slots__ = ("_entries", "_static", "kraft_version", "offset", "voters")

    def __init__(self, static: VoterSet = VoterSet()) -> None:  # noqa: B008 - a tuple
        self._static = static
        self.restart(-1, None, 0)

    def restart(self, offset: int, voters: VoterSet | None, kraft_version: int) -> None:
        """As a snapshot says; without voters of its own it leaves them to the configuration."""
        self._entries = [VotersAt(offset, self._static if voters is None else voters, kraft_version)]
        self._note_last()

    def use_static(self, voters: VoterSet) -> None:
        """Those of the configuration count wherever kraft.version is 0."""
        self._static = voters
        self._entries = [e if e.kraft_version else e._replace(voters=voters) for e in self._entries]
        self._note_last()

    def _note_last(self) -> None:
        """Read at every step of the core, so they are attributes."""
        self.offset, self.voters, self.kraft_version = self._entries[-1]

    def add(self, offset: int, *, voters: VoterSet | None = None, kraft_version: int | None = None) -> None:
        last = self._entries[-1]
        entry = VotersAt(
            offset,
            last.voters if voters is None else voters,
            last.kraft_version if kraft_version is None else kraft_version,
        )
        self._entries.append(entry)
        self._note_last()

    @property
    def before(self) -> VoterSet:
        """The voters that the last ones replace; they count again should the last ones be truncated."""
        return self._entries[-2].voters if len(self._entries) > 1 else self.voters

    def truncate_to(self, end_offset: int) -> None:
        while len(self._entries) > 1 and self._entries[-1].offset >= end_offset:
            self._entries.pop()
        self._note_last()

    def forget_before(self, offset: int) -> None:
        """Nothing below is ever truncated again."""
        while len(self._entries) > 1 and self._entries[1].offset < offset:
            del self._entries[0]

    def at(self, offset: int) -> VotersAt:
        """As they are for a reader that has everything below `offset`."""
        return next((e for e in reversed(self._entries) if e.offset < offset), self._entries[0])


def voters_record(voters: VoterSet) -> "messages.VotersRecord":
    kind = messages.VotersRecord
    return kind(
        version=0,
        voters=[
            kind.Voter(
                voter_id=v.id,
                voter_directory_id=v.directory_id,
                endpoints=[kind.Endpoint(name=e.name, host=e.host, port=e.port) for e in v.endpoints],
                kraft_version_feature=kind.KRaftVersionFeature(
                    min_supported_version=v.kraft_versions[0], max_supported_version=v.kraft_versions[1]
                ),
            )
            for v in voters.voters
        ],
    )


def voters_of(record: "messages.VotersRecord") -> VoterSet:
    return VoterSet(
        tuple(
            Voter(
                v.voter_id,
                Uuid(v.voter_directory_id),
                tuple(VoterEndpoint(e.name, e.host, e.port) for e in v.endpoints),
                (v.kraft_version_feature.min_supported_version, v.kraft_version_feature.max_supported_version),
            )
            for v in record.voters
        )
    )


def static_voters(nodes: Iterable[tuple[int, str, int]], listener: str) -> VoterSet:
    """controller.quorum.voters: id, host and port of each."""
    return VoterSet(tuple(Voter(i, ZERO_UUID, (VoterEndpoint(listener, host, port),)) for i, host, port in nodes))


def committed_by(end_offsets: Sequence[int], voters: int) -> int:
    """The offset below which a majority has everything, given what each voter that reported has on its disk."""
    if len(end_offsets) < voters // 2 + 1:
        return -1
    return sorted(end_offsets, reverse=True)[voters // 2]


NO_DIRECTORY: Final = ReplicaKey(-1).directory_id
