"""What topics take: how large a batch may be, and whether a record has to have a key.

The broker has the last word. But it refuses a batch as a whole, and with that ends the transaction: whoever knows
before cuts batches so that they fit, and may ask what is to become of a record that its topic will never take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.client import admin
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.model.errors import Errors
from ottla.pipelines.sink.encoding import Rows, sizes_alone

PRODUCTION_ERROR: Final = "production-error"
"""Why a record was left out that its topic does not take."""


class Limit(NamedTuple):
    """Of one topic."""

    max_message_bytes: int
    needs_keys: bool
    """It is compacted."""


UNKNOWN: Final = Limit(0x7FFF_FFFF, needs_keys=False)
"""Of topics whose settings are not for us to see."""


def limits_of(cluster: Cluster, topics: Sequence[str]) -> dict[str, Limit]:
    told = admin.describe_configs(cluster, admin.TOPIC, topics) if topics else {}
    return {topic: _limit(told[topic]) for topic in topics}


def _limit(told: Sequence[Any] | KafkaError) -> Limit:
    if isinstance(told, KafkaError):
        return UNKNOWN
    values = {each.name: each.value for each in told}
    largest = values.get("max.message.bytes")
    return Limit(
        UNKNOWN.max_message_bytes if largest is None else int(largest),
        needs_keys="compact" in (values.get("cleanup.policy") or ""),
    )


class Refused(NamedTuple):
    """A record that its topic does not take."""

    topic: str
    partition: int | None
    """None: the key says it."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    error: KafkaError
    """As the broker would say it."""


class Instead(NamedTuple):
    """A record that is written in its place."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


Judge = Callable[[Refused], Sequence[Instead]]
"""Gives what is written instead of such a record, which is left out then; or raises, and that ends the batch."""


def refused(
    names: Sequence[str], codes: npt.NDArray[Any], limits: Callable[[str], Limit], rows: Rows
) -> Iterator[tuple[int, KafkaError]]:
    """The rows that their topics do not take, and what the broker would say. `codes`: of each row, which name."""
    known = [limits(name) for name in names]
    sizes = sizes_alone(rows)
    most = np.array([each.max_message_bytes for each in known], np.int64)[codes]
    wrong = sizes > most
    if rows.key.null_count and any(each.needs_keys for each in known):
        keyless = rows.key.is_null().to_numpy(zero_copy_only=False)
        wrong |= keyless & np.array([each.needs_keys for each in known])[codes]
    for row in np.flatnonzero(wrong).tolist():
        name = names[int(codes[row])]
        if sizes[row] > most[row]:
            why = f"a record takes {sizes[row]} bytes, and max.message.bytes of the topic is {most[row]}"
            yield row, KafkaError(Errors.MESSAGE_TOO_LARGE, name, why)
        else:
            yield row, KafkaError(Errors.INVALID_RECORD, name, "a record has no key, and the topic is compacted")


def as_refused(table: pa.Table, row: int, error: KafkaError) -> Refused:
    found: Mapping[str, Any] = table.slice(row, 1).to_pylist()[0]
    headers = tuple((each["key"], each["value"]) for each in found.get("headers") or ())
    place = found.get("partition")
    return Refused(
        found["topic"],
        None if place is None or place < 0 else place,
        found["key"],
        found["value"],
        headers,
        found.get("timestamp") or 0,
        error,
    )
