"""Who votes on the metadata log (KIP-853)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.client.admin import ADMIN_TIMEOUT_MS, describe_quorum
from ottla.client.cluster import Cluster
from ottla.client.errors import KafkaError, check
from ottla.protocol import messages


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int


def parse_endpoint(text: str) -> Endpoint:
    """Raises ValueError."""
    name, found, address = text.partition("://")
    host, _, port = address.rpartition(":")
    if not (found and name and host and port.isdigit()):
        raise ValueError(f"{text!r} is no endpoint: NAME://HOST:PORT is expected")
    return Endpoint(name.upper(), host.strip("[]"), int(port))


def add_voter(cluster: Cluster, voter_id: int, directory_id: bytes, endpoint: Endpoint) -> None:
    kind = messages.AddRaftVoterRequest
    request = kind(
        cluster_id=None,
        timeout_ms=ADMIN_TIMEOUT_MS,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[kind.Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)],
    )

    def attempt() -> None:
        response = cluster.call(request, messages.AddRaftVoterResponse)
        check(response.error_code, f"voter {voter_id}", response.error_message)

    _until_settled(cluster, attempt, lambda: _votes(cluster, voter_id, directory_id))


def remove_voter(cluster: Cluster, voter_id: int, directory_id: bytes) -> None:
    request = messages.RemoveRaftVoterRequest(cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id)

    def attempt() -> None:
        response = cluster.call(request, messages.RemoveRaftVoterResponse)
        check(response.error_code, f"voter {voter_id}", response.error_message)

    _until_settled(cluster, attempt, lambda: not _votes(cluster, voter_id, directory_id))


def _until_settled(cluster: Cluster, attempt: Callable[[], None], done: Callable[[], bool]) -> None:
    """Again while the quorum is busy with another change or changes its leader. A refusal of a later attempt may only
    mean that an earlier one has succeeded after all."""
    deadline = cluster.deadline()
    again = False
    while True:
        try:
            return attempt()
        except KafkaError as error:
            if again and done():
                return None
            if not error.retriable:
                raise
            deadline.pause("changing the voters", error)
            again = True


def _votes(cluster: Cluster, voter_id: int, directory_id: bytes) -> bool:
    voters = describe_quorum(cluster).topics[0].partitions[0].current_voters
    return any((each.replica_id, each.replica_directory_id) == (voter_id, directory_id) for each in voters)
