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


class Voter(NamedTuple):
    id: int
    directory_id: Uuid = ZERO_UUID
    """Zero while kraft.version is 0: static voters are known by their id alone."""
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_versions: tuple[int, int] = SUPPORTED_KRAFT_VERSIONS


class VoterSet(NamedTuple):
    voters: tuple[Voter, ...] = ()

    def find(self, node_id: int) -> Voter | None:
        return next((v for v in self.voters if v.id == node_id), None)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted(v.id for v in self.voters))

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def updated(self, voter: Voter) -> "VoterSet":
        return VoterSet(tuple(voter if v.id == voter.id else v for v in self.voters))


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
