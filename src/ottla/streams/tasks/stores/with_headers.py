"""Stores that keep headers beside values (KIP-1271). The changelog has them as headers of its records.

What lies in such a store is one value: headers, timestamp, and the value's own bytes. The stores themselves know
nothing of it; the serde packs it, and the changelog is told of the parts.
"""

from typing import Any

from ottla.serdes.base import Serde
from ottla.streams.record import Headers
from ottla.streams.tasks.stores.base import Moment, StoreContext
from ottla.streams.tasks.stores.codec import INT, LONG, nullable, read_nullable
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.topology.stores import AggregationWithHeaders, ChangeLog, ValueTimestampHeaders


def packed(data: bytes, timestamp: int, headers: Headers) -> bytes:
    parts = [INT.pack(len(headers))]
    for name, value in headers:
        parts += [nullable(name.encode()), nullable(value)]
    return b"".join([*parts, LONG.pack(timestamp), data])


def unpacked(stored: bytes) -> tuple[bytes, int, Headers]:
    (count,) = INT.unpack_from(stored)
    position = 4
    headers = []
    for _ in range(count):
        name, position = read_nullable(stored, position)
        value, position = read_nullable(stored, position)
        headers.append(((name or b"").decode(), value))
    return stored[position + 8 :], LONG.unpack_from(stored, position)[0], tuple(headers)


class ValueSerde(Serde[ValueTimestampHeaders]):
    """Of key-value and window stores."""

    name = "value-timestamp-headers"

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner

    def encode(self, value: ValueTimestampHeaders) -> bytes:
        return packed(self.inner.encode(value.value), value.timestamp, tuple(value.headers))

    def decode(self, data: bytes) -> ValueTimestampHeaders:
        value, timestamp, headers = unpacked(data)
        return ValueTimestampHeaders(self.inner.decode(value), timestamp, headers)


class AggregationSerde(Serde[AggregationWithHeaders]):
    """Of session stores, whose values have no timestamp."""

    name = "aggregation-headers"

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner

    def encode(self, value: AggregationWithHeaders) -> bytes:
        return packed(self.inner.encode(value.aggregation), -1, tuple(value.headers))

    def decode(self, data: bytes) -> AggregationWithHeaders:
        aggregation, _, headers = unpacked(data)
        return AggregationWithHeaders(self.inner.decode(aggregation), headers)


class KeyValuesWithHeaders(KeyValues):
    __slots__ = ()

    def restore(self, key: bytes, value: bytes | None, timestamp: int, _headers: Headers = ()) -> None:
        super().restore(key, None if value is None else packed(value, timestamp, _headers), timestamp)


def with_headers(context: StoreContext, *, sessions: bool) -> StoreContext:
    """The context for a store that keeps headers, out of that for one that does not."""
    serde = AggregationSerde(context.value_serde) if sessions else ValueSerde(context.value_serde)
    log = None if context.log is None else _told_apart(context.log, context.moment)
    return StoreContext(
        context.backend, context.key_serde, serde, log=log, moment=context.moment, dropped=context.dropped
    )


def _told_apart(log: ChangeLog, moment: Moment) -> ChangeLog:
    """A deletion has the headers of the record that led to it."""

    def told(key: bytes, stored: bytes | None, timestamp: int, _headers: Headers) -> None:
        if stored is None:
            log(key, None, moment.timestamp, moment.headers)
            return
        data, own, headers = unpacked(stored)
        log(key, data, timestamp if own < 0 else own, headers)

    return told
