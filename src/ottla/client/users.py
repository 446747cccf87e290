"""Users that log in by SCRAM, as an administrator sees them (KIP-554)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.client.errors import KafkaError, check, known
from ottla.client.routing import Routing, call
from ottla.client.steps import Steps, operation
from ottla.metadata.scram import SCRAM_BY_TYPE, ScramMechanism, salted_password
from ottla.model.errors import Errors
from ottla.protocol import messages


class NewCredential(NamedTuple):
    """A password salted for one mechanism: the password itself is told to nobody."""

    name: str
    mechanism: ScramMechanism
    iterations: int
    salt: bytes
    salted: bytes

    @classmethod
    def of(cls, name: str, password: str, mechanism: ScramMechanism, iterations: int, salt: bytes) -> "NewCredential":
        """Takes milliseconds."""
        return cls(name, mechanism, iterations, salt, salted_password(mechanism, password, salt, iterations))


class Credential(NamedTuple):
    mechanism: str
    iterations: int


def alteration(
    new: Iterable[NewCredential] = (), gone: Iterable[tuple[str, ScramMechanism]] = ()
) -> "messages.AlterUserScramCredentialsRequest":
    kind = messages.AlterUserScramCredentialsRequest
    return kind(
        deletions=[kind.ScramCredentialDeletion(name, mechanism.type) for name, mechanism in gone],
        upsertions=[
            kind.ScramCredentialUpsertion(each.name, each.mechanism.type, each.iterations, each.salt, each.salted)
            for each in new
        ],
    )


def check_alteration(response: "messages.AlterUserScramCredentialsResponse") -> None:
    """Raises KafkaError for the first user of whom nothing was changed."""
    for result in response.results:
        check(result.error_code, f"user {result.user}", result.error_message)


@operation
def alter_users(
    routing: Routing, new: Sequence[NewCredential] = (), gone: Sequence[tuple[str, ScramMechanism]] = ()
) -> Steps[None]:
    """One by one: Kafka refuses two changes of a user in one request."""
    requests = [alteration([each]) for each in new] + [alteration((), [each]) for each in gone]
    for request in requests:
        response = yield from call(routing, request, messages.AlterUserScramCredentialsResponse)
        check_alteration(response)


@operation
def describe_users(routing: Routing, names: Sequence[str] = ()) -> Steps[dict[str, list[Credential]]]:
    """All if none is named. Who does not exist is left out. Raises KafkaError."""
    kind = messages.DescribeUserScramCredentialsRequest
    request = kind(users=[kind.UserName(name) for name in names] if names else None)
    response = yield from call(routing, request, messages.DescribeUserScramCredentialsResponse)
    check(response.error_code, "users", response.error_message)
    found: dict[str, list[Credential]] = {}
    for result in response.results:
        if result.error_code == Errors.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            raise KafkaError(known(result.error_code), f"user {result.user}", result.error_message)
        found[result.user] = [
            Credential(SCRAM_BY_TYPE[info.mechanism].name, info.iterations)
            for info in result.credential_infos
            if info.mechanism in SCRAM_BY_TYPE
        ]
    return found
