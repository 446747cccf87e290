"""From an exception to a sentence: what happened, to what, and what to do about it."""

import struct

from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    KafkaError,
    LoginFailed,
    NoSuchPartition,
    NotKafka,
    RequestTooLarge,
    TimedOut,
    Unreachable,
    UnsupportedApi,
)
from ottla.model.errors import Errors
from ottla.model.extras import missing
from ottla.protocol.codec import EncodeError


class Failure(Exception):
    """A command cannot do what it was asked; the text is ready to be shown."""


_ADVICE = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topics list` shows what exists, `ottla topics create` makes a topic",
    Errors.TOPIC_ALREADY_EXISTS: "`ottla topics describe` shows it; `--if-not-exists` makes this no failure",
    Errors.INVALID_REPLICATION_FACTOR: "it cannot exceed the number of live brokers (`ottla cluster info`)",
    Errors.MESSAGE_TOO_LARGE: "raise the topic's limit with `ottla configs set topic TOPIC max.message.bytes=N`",
    Errors.NETWORK_EXCEPTION: "is the broker still up? It hangs up on requests above its socket.request.max.bytes, too",
    Errors.GROUP_ID_NOT_FOUND: "`ottla groups list` shows what exists",
    Errors.INVALID_TOPIC_EXCEPTION: "a topic's name is 1 to 249 ASCII letters, digits, '.', '_' and '-', and not "
    "just '.' or '..'",
    Errors.NON_EMPTY_GROUP: "stop its consumers first; `ottla groups describe GROUP --members` shows them",
    Errors.NOT_ENOUGH_REPLICAS: "`ottla topics describe TOPIC` shows the replicas in sync",
    Errors.PREFERRED_LEADER_NOT_AVAILABLE: "its broker is down or not in sync (`ottla cluster status`)",
    Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica that has all records is up: start their brokers; --unclean does "
    "without them, at a loss",
    Errors.INVALID_REPLICA_ASSIGNMENT: "`ottla cluster status` shows the brokers there are",
    Errors.POLICY_VIOLATION: "the cluster's policy forbids it",
    Errors.CLUSTER_AUTHORIZATION_FAILED: "`ottla acls why USER OPERATION cluster` tells what is missing",
    Errors.TOPIC_AUTHORIZATION_FAILED: "`ottla acls why USER OPERATION topic:TOPIC` tells what is missing",
    Errors.GROUP_AUTHORIZATION_FAILED: "`ottla acls why USER OPERATION group:GROUP` tells what is missing",
    Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "`ottla acls why USER OPERATION transactional-id:ID` tells what is "
    "missing",
    Errors.DELEGATION_TOKEN_AUTH_DISABLED: "the nodes have no delegation.token.secret.key, the same in all their files",
    Errors.DELEGATION_TOKEN_NOT_FOUND: "it has ended, or its HMAC is another: its owner makes a new one",
    Errors.DELEGATION_TOKEN_OWNER_MISMATCH: "its owner and those named as renewers may do that, and no super user",
    Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in by a password over SASL, not by a token and not in plain text",
    Errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "`ottla acls why USER describe delegation-token:ID` tells what is "
    "missing",
    Errors.DELEGATION_TOKEN_EXPIRED: "its owner makes a new one; delegation.token.max.lifetime.ms says how long one "
    "lives",
    Errors.INVALID_PRINCIPAL_TYPE: "whoever owns or renews a token is a User:NAME",
    Errors.SECURITY_DISABLED: "the brokers allow everything to everybody: "
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer in their files changes that",
}


def explain(error: Exception) -> str:
    if isinstance(error, Unreachable):
        return _unreachable(error)
    if isinstance(error, KafkaError):
        advice = _advice(error)
        return f"{error}\n  {advice}" if advice else str(error)
    if isinstance(error, NotKafka):
        return f"{error}\n  name a broker's client port with --bootstrap HOST:PORT"
    if isinstance(error, ConnectionLost):
        return f"{error}\n  is {error.address} a broker's client port, and is the broker still up?"
    if isinstance(error, LoginFailed):
        return f"{error}\n  --command-config FILE says who you are: sasl.mechanism, sasl.jaas.config (`ottla users`)"
    if isinstance(error, TimedOut):
        return f"{error}\n  is the cluster healthy? `ottla cluster info` shows its brokers; --timeout waits longer"
    if isinstance(error, UnsupportedApi):
        return f"{error}\n  the broker is too old, or this is a controller's port"
    if isinstance(error, (ClientError, Failure)):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return missing(error)
    if isinstance(error, OSError):
        return _system(error)
    if (why := _no_room(error)) is not None:
        return why
    return (
        f"unexpected {type(error).__name__}: {error}\n"
        "  this is a defect of ottla; with OTTLA_TRACEBACK=1 in the environment it shows where"
    )


def _advice(error: KafkaError) -> str | None:
    if isinstance(error, NoSuchPartition):
        add = f"`ottla topics add-partitions {error.topic} --total {error.partition + 1}` adds what is missing"
        return f'{add}; without --partition (or "partition" in a JSON line) any will do'
    if isinstance(error, RequestTooLarge):
        return "raise that setting of the brokers and start them again, or write smaller records"
    if error.error is Errors.INVALID_RECORD and "without a key" in error.message:
        return "give every record one: -k KEY, or -K SEPARATOR for lines that hold key and value"
    if error.error is Errors.INVALID_TOPIC_EXCEPTION and error.message != error.error.text:
        return None  # the broker has said what is wrong with the name
    return _ADVICE.get(error.error)


def _no_room(error: Exception) -> str | None:
    """Of what was given and Kafka's protocol cannot carry."""
    cause = error.__cause__ or error
    if isinstance(cause, UnicodeEncodeError):
        shown = repr(cause.object.encode(errors="surrogateescape"))[1:]
        return f"{shown} is not UTF-8, as all names in Kafka are"
    _, is_number, room = str(cause).partition(" format requires ")
    if isinstance(cause, struct.error) and is_number:
        return f"a number is too large, or too small, for Kafka's protocol: {room.replace('number', 'it')} is needed"
    is_text = isinstance(error, EncodeError) and "is longer than Kafka's" in str(error)
    return str(error) if is_text else None


def _unreachable(error: Unreachable) -> str:
    if len(error.reasons) == 1:
        ((address, reason),) = error.reasons.items()
        what = f"nothing listens at {address}" if reason == "nothing listens there" else f"{address}: {reason}"
    else:
        what = "no broker could be reached:\n" + "\n".join(f"  {at}: {why}" for at, why in error.reasons.items())
    if any(hint in why for why in error.reasons.values() for hint in ("no TLS: ", "does its listener want")):
        return (
            f"{what}\n  --command-config FILE says how to connect: security.protocol, ssl.truststore.location, sasl.…"
        )
    return f"{what}\n  start a node with `ottla start`, or name another with --bootstrap HOST:PORT"


def _system(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename is not None else reason
