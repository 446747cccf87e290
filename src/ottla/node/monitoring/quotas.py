"""Clients with quotas: what they use, and for how long they are held."""

from collections.abc import Iterator
from itertools import islice

from ottla.broker.quotas.levels import Bucket
from ottla.metrics import names
from ottla.metrics.text import Labels, Sample, labels, many
from ottla.model.quotas import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from ottla.node.monitoring.watched import Watched

_RESOURCES = {PRODUCER_BYTE_RATE: "Produce", CONSUMER_BYTE_RATE: "Fetch", REQUEST_PERCENTAGE: "Request"}
"""As Kafka's beans are called."""


def pieces(watched: Watched) -> Iterator[str]:
    """Nothing where nobody has a quota."""
    quotas, now = watched.quotas, watched.clock.monotonic()
    rates = list(islice(quotas.rates(), watched.max_partitions))
    changes = list(islice(quotas.changes(), watched.max_partitions))
    used = [(key, _of(_RESOURCES[key], bucket), meter) for key, bucket, meter in rates]
    mutations = [(_of("ControllerMutation", bucket), meter) for bucket, meter in changes]
    yield from many(
        names.QUOTA_BYTES,
        ((told, meter.rate.per_second(now)) for key, told, meter in used if key != REQUEST_PERCENTAGE),
    )
    yield from many(
        names.QUOTA_TIME, ((told, meter.rate.per_second(now)) for key, told, meter in used if key == REQUEST_PERCENTAGE)
    )
    yield from many(names.QUOTA_TOKENS, ((told, meter.tokens.tokens(meter.bound, now)) for told, meter in mutations))
    held: list[Sample] = [(told, meter.throttled.average_ms(now)) for _, told, meter in used]
    held += [(told, meter.throttled.average_ms(now)) for told, meter in mutations]
    yield from many(names.QUOTA_THROTTLE, held)


def _of(resource: str, bucket: Bucket) -> Labels:
    return labels(resource=resource, user=bucket.user or "", clientId=bucket.client_id or "")
