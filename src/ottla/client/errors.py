"""What can go wrong between a client and a cluster: a small tree by cause.

`KafkaError` is an answer (the broker said no), the others are the lack of one. A caller that shows them to a person
finds the address or the subject in the exception, not only in its text.
"""

from ottla.model.errors import Errors


class ClientError(Exception):
    """Root of the tree."""


class Unreachable(ClientError):
    """No connection to any of the addresses. `reasons` tells why, address by address."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self.reasons = reasons
        super().__init__("no broker could be reached: " + "; ".join(f"{at}: {why}" for at, why in reasons.items()))


class ConnectionLost(ClientError):
    """The connection ended before the answer came: the request may or may not have been carried out."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"the connection to {address} was lost: {reason}")


class NotKafka(ClientError):
    """Something answers at the address, but not in Kafka's protocol."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"{address} does not speak Kafka's protocol: {reason}")


class LoginFailed(ClientError):
    """The broker did not accept who this client says it is."""

    def __init__(self, address: str, who: str, reason: str) -> None:
        self.address = address
        self.who = who
        self.reason = reason
        super().__init__(f"{address} does not let {who} in: {reason}")


class TimedOut(ClientError):
    """No usable answer before the deadline. `what` was being done; `last` is the last error seen on the way."""

    def __init__(self, what: str, timeout_s: float, last: Exception | None = None) -> None:
        self.what = what
        self.last = last
        tail = f"; the last answer was: {last}" if last is not None else ""
        super().__init__(f"{what} was not done within {timeout_s:g} s{tail}")


class UnsupportedApi(ClientError):
    """The broker does not offer an API, or no version of it that is known here."""

    def __init__(self, address: str, api: str, reason: str) -> None:
        self.address = address
        self.api = api
        super().__init__(f"{address} does not offer {api}: {reason}")


class CorruptAnswer(ClientError):
    """The broker's bytes contradict themselves (framing, lengths, a batch's CRC)."""


class KafkaError(ClientError):
    """The broker answered with an error code."""

    def __init__(self, error: Errors, subject: str, message: str | None = None) -> None:
        self.error = error
        self.subject = subject
        self.message = message or error.text
        super().__init__(f"{subject}: {self.message} ({error.name})")

    @property
    def retriable(self) -> bool:
        return self.error.retriable


class NoSuchPartition(KafkaError):
    """The topic is there, the partition is not. Found out before anything was sent."""

    def __init__(self, topic: str, partition: int, count: int) -> None:
        self.topic = topic
        self.partition = partition
        has = "it has one only, partition 0" if count == 1 else f"it has {count}, numbered from 0 to {count - 1}"
        super().__init__(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}", has)

    @property
    def retriable(self) -> bool:
        return False


class RequestTooLarge(KafkaError):
    """The broker hangs up on requests of this size, whatever the limit of the topic is."""

    def __init__(self, subject: str, size: int, limit: int) -> None:
        message = f"a request of {size} bytes is more than its broker takes: socket.request.max.bytes is {limit}"
        super().__init__(Errors.MESSAGE_TOO_LARGE, subject, message)


def known(code: int) -> Errors:
    """A code newer than the table is still an error, only without a name of its own."""
    found = Errors._value2member_map_.get(code)
    return found if isinstance(found, Errors) else Errors.UNKNOWN_SERVER_ERROR


def check(code: int, subject: str, message: str | None = None) -> None:
    """Raises KafkaError unless `code` is 0."""
    if code:
        error = known(code)
        if error == Errors.UNKNOWN_SERVER_ERROR and code != error and not message:
            message = f"error code {code}, which is newer than this client"
        raise KafkaError(error, subject, message)
