"""What is counted, as it hangs beside the code that counts. Integers that only rise; whoever reads takes differences.

On the way of every record, so the classes are flat, without properties, and compiled with that way (pyproject.toml).
"""

from ottla.metrics.histogram import Histogram


class TopicCounts:
    """One topic on this node; each of its partitions knows the same object."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        """To clients; what followers take is counted apart, as Kafka does."""
        self.produces = 0
        """Requests, once for each partition that they name."""
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: "TopicCounts") -> None:
        """Takes over what a topic that is being forgotten has counted: sums over all topics never fall."""
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.produces += other.produces
        self.fetches += other.fetches
        self.failed_produces += other.failed_produces
        self.failed_fetches += other.failed_fetches
        self.replication_bytes_in += other.replication_bytes_in
        self.replication_bytes_out += other.replication_bytes_out


class RequestCounts:
    """One API on one listener."""

    __slots__ = ("errors", "has_error_code", "min_version", "times", "versions")

    def __init__(self, min_version: int, max_version: int, *, has_error_code: bool) -> None:
        self.min_version = min_version
        self.versions: list[int] = [0] * (max_version - min_version + 1)
        """Requests by version, the lowest first."""
        self.times = Histogram()
        """From the arrival of a request to the sending of its reply; one may stand for several of its kind."""
        self.has_error_code = has_error_code
        """The response tells an error of the request as a whole."""
        self.errors: dict[int, int] = {}
        """Replies by the error that they tell."""

    def failed(self, error_code: int) -> None:
        self.errors[error_code] = self.errors.get(error_code, 0) + 1


class Traffic:
    """Bytes through the sockets of one listener, or of one kind of connection to other nodes."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.received = 0
        self.sent = 0


class ReplicaCounts:
    """What happened to the replicas of this node."""

    __slots__ = ("failed_isr_updates", "isr_expands", "isr_shrinks")

    def __init__(self) -> None:
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0

    def isr_changed(self, before: int, after: int) -> None:
        """By the number of replicas in sync."""
        if after < before:
            self.isr_shrinks += 1
        elif after > before:
            self.isr_expands += 1


class QuorumCounts:
    """What this node did as a member of the quorum."""

    __slots__ = (
        "_followed_offset",
        "_followed_since",
        "appended",
        "commit_ms",
        "commit_ms_max",
        "commits",
        "fetched",
        "requests",
        "responses",
    )

    def __init__(self) -> None:
        self.requests = 0
        """To other nodes, and the answers to them."""
        self.responses = 0
        self.appended = 0
        """Records, as leader."""
        self.fetched = 0
        """Records, from the leader."""
        self.commits = 0
        """Of which the time was taken: one at a time is followed from its append to its commit."""
        self.commit_ms = 0
        self.commit_ms_max = 0
        self._followed_offset = -1
        self._followed_since = 0

    def appended_as_leader(self, records: int, last_offset: int, now: int) -> None:
        self.appended += records
        if self._followed_offset < 0:
            self._followed_offset, self._followed_since = last_offset, now

    def committed(self, high_watermark: int, now: int) -> None:
        if 0 <= self._followed_offset < high_watermark:
            passed = now - self._followed_since
            self.commits += 1
            self.commit_ms += passed
            self.commit_ms_max = max(self.commit_ms_max, passed)
            self._followed_offset = -1
