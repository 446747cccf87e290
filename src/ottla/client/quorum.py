"""Who votes on the metadata log (KIP-853)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.client.admin import ADMIN_TIMEOUT_MS, describe_quorum
from ottla.client.errors import KafkaError, check
from ottla.client.routing import Routing, call
from ottla.client.steps import Steps, begin, operation
from ottla.protocol import messages


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int


class Voter(NamedTuple):
    voter_id: int
    directory_id: bytes


def parse_endpoint(text: str) -> Endpoint:
    """Raises ValueError."""
    name, found, address = text.partition("://")
    host, _, port = address.rpartition(":")
    if not (found and name and host and port.isdigit()):
        raise ValueError(f"{text!r} is no endpoint: NAME://HOST:PORT is expected")
    return Endpoint(name.upper(), host.strip("[]"), int(port))


@operation
def add_voter(routing: Routing, voter_id: int, directory_id: bytes, endpoint: Endpoint) -> Steps[None]:
    kind = messages.AddRaftVoterRequest
    request = kind(
        cluster_id=None,
        timeout_ms=ADMIN_TIMEOUT_MS,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[kind.Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)],
    )

    def attempt() -> Steps[None]:
        response = yield from call(routing, request, messages.AddRaftVoterResponse)
        check(response.error_code, f"voter {voter_id}", response.error_message)

    return _until_settled(routing, attempt, Voter(voter_id, directory_id), votes=True)


@operation
def remove_voter(routing: Routing, voter_id: int, directory_id: bytes) -> Steps[None]:
    request = messages.RemoveRaftVoterRequest(cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id)

    def attempt() -> Steps[None]:
        response = yield from call(routing, request, messages.RemoveRaftVoterResponse)
        check(response.error_code, f"voter {voter_id}", response.error_message)

    return _until_settled(routing, attempt, Voter(voter_id, directory_id), votes=False)


def _until_settled(routing: Routing, attempt: Callable[[], Steps[None]], voter: Voter, *, votes: bool) -> Steps[None]:
    """Again while the quorum is busy with another change or changes its leader. A refusal of a later attempt may only
    mean that an earlier one has succeeded after all."""
    attempts = yield from begin("changing the voters", routing.timeout_s)
    again = False
    while True:
        try:
            return (yield from attempt())
        except KafkaError as error:
            if again and (yield from _votes(routing, voter)) == votes:
                return None
            if not error.retriable:
                raise
            yield from attempts.again(error)
            again = True


def _votes(routing: Routing, voter: Voter) -> Steps[bool]:
    answer = yield from describe_quorum.steps(routing)
    voters = answer.topics[0].partitions[0].current_voters
    return any((each.replica_id, each.replica_directory_id) == voter for each in voters)
