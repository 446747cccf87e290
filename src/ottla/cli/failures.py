"""From an exception to a sentence: what happened, to what, and what to do about it."""

from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    KafkaError,
    NotKafka,
    TimedOut,
    Unreachable,
    UnsupportedApi,
)
from ottla.model.errors import Errors


class Failure(Exception):
    """A command cannot do what it was asked; the text is ready to be shown."""


_ADVICE = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topics list` shows what exists, `ottla topics create` makes a topic",
    Errors.TOPIC_ALREADY_EXISTS: "`ottla topics describe` shows it; `--if-not-exists` makes this no failure",
    Errors.INVALID_REPLICATION_FACTOR: "it cannot exceed the number of live brokers (`ottla cluster info`)",
    Errors.MESSAGE_TOO_LARGE: "raise the topic's limit with `ottla configs set topic TOPIC max.message.bytes=N`",
    Errors.NETWORK_EXCEPTION: "is the broker still up? It hangs up on requests above its socket.request.max.bytes, too",
    Errors.GROUP_ID_NOT_FOUND: "`ottla groups list` shows what exists",
    Errors.NON_EMPTY_GROUP: "stop its consumers first; `ottla groups describe GROUP --members` shows them",
    Errors.NOT_ENOUGH_REPLICAS: "`ottla topics describe TOPIC` shows the replicas in sync",
    Errors.PREFERRED_LEADER_NOT_AVAILABLE: "its broker is down or not in sync (`ottla cluster status`)",
    Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica that has all records is up: start their brokers; --unclean does "
    "without them, at a loss",
    Errors.INVALID_REPLICA_ASSIGNMENT: "`ottla cluster status` shows the brokers there are",
    Errors.POLICY_VIOLATION: "the cluster's policy forbids it",
    Errors.CLUSTER_AUTHORIZATION_FAILED: "ask who administers the cluster for the right to do this",
    Errors.TOPIC_AUTHORIZATION_FAILED: "ask who administers the cluster for the right to do this",
}


def explain(error: Exception) -> str:
    if isinstance(error, Unreachable):
        return _unreachable(error)
    if isinstance(error, KafkaError):
        advice = _ADVICE.get(error.error)
        return f"{error}\n  {advice}" if advice else str(error)
    if isinstance(error, NotKafka):
        return f"{error}\n  name a broker's client port with --bootstrap HOST:PORT"
    if isinstance(error, ConnectionLost):
        return f"{error}\n  is {error.address} a broker's client port, and is the broker still up?"
    if isinstance(error, TimedOut):
        return f"{error}\n  is the cluster healthy? `ottla cluster info` shows its brokers; --timeout waits longer"
    if isinstance(error, UnsupportedApi):
        return f"{error}\n  the broker is too old, or this is a controller's port"
    if isinstance(error, (ClientError, Failure)):
        return str(error)
    if isinstance(error, OSError):
        return _system(error)
    return (
        f"unexpected {type(error).__name__}: {error}\n"
        "  this is a defect of ottla; with OTTLA_TRACEBACK=1 in the environment it shows where"
    )


def _unreachable(error: Unreachable) -> str:
    if len(error.reasons) == 1:
        ((address, reason),) = error.reasons.items()
        what = f"nothing listens at {address}" if reason == "nothing listens there" else f"{address}: {reason}"
    else:
        what = "no broker could be reached:\n" + "\n".join(f"  {at}: {why}" for at, why in error.reasons.items())
    return f"{what}\n  start a node with `ottla start`, or name another with --bootstrap HOST:PORT"


def _system(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename is not None else reason
