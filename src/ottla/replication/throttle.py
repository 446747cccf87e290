"""How fast replicas that have fallen behind may be copied, so that a reassignment leaves room for clients (KIP-73)."""

from collections import deque
from collections.abc import Sequence


class ByteRate:
    """Bytes per second over the last samples. Kafka's rule: a window is never shorter than one sample."""

    __slots__ = ("_most", "_sample_ms", "_samples", "_total")

    def __init__(self, samples: int, sample_ms: int) -> None:
        self._most = samples
        self._sample_ms = sample_ms
        self._samples: deque[list[int]] = deque()
        """[when it began, bytes], the oldest first."""
        self._total = 0

    def record(self, size: int, now: int) -> None:
        samples = self._samples
        if not samples or now - samples[-1][0] >= self._sample_ms:
            samples.append([now, 0])
        samples[-1][1] += size
        self._total += size

    def per_second(self, now: int) -> float:
        samples = self._samples
        while samples and now - samples[0][0] >= self._most * self._sample_ms:
            self._total -= samples.popleft()[1]
        if not samples:
            return 0.0
        return self._total * 1000 / max(now - samples[0][0], self._sample_ms)


def is_throttled(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """`replicas` as the topic's setting has them: partition:broker pairs, or a star for all."""
    return f"{partition}:{broker_id}" in replicas or tuple(replicas) == ("*",)
